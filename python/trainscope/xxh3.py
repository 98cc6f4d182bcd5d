"""XXH3 hashes of 64 bits (xxHash 0.8, seed 0), in numpy: those of traces and of model files.

The module xxhash is used where it is installed; without it a megabyte takes some 20 ms. The hash is
defined by Y. Collet's specification of xxHash; its 192 bytes of secret and its primes are below.
"""
import numpy

try:
    import xxhash as _xxhash
except ImportError:
    _xxhash = None

_MASK = (1 << 64) - 1
_PRIME32 = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D)
_PRIME64 = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9,
            0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
_SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e")
_STRIPE = 64  # bytes: eight lanes of 64 bits
_STRIPES = (len(_SECRET) - _STRIPE) // 8  # of a block
_BLOCK = _STRIPE * _STRIPES
_START = (_PRIME32[2], *_PRIME64[:4], _PRIME32[1], _PRIME64[4], _PRIME32[0])


def xxh3_64(data):
    """The hash of `data` (bytes-like, contiguous) as an int of 64 bits."""
    if _xxhash is not None:
        return _xxhash.xxh3_64_intdigest(data)
    return plain_xxh3_64(data)


def plain_xxh3_64(data):
    """The same without the module xxhash."""
    data = memoryview(data).cast("B")
    if len(data) > 240:
        return _hash_long(data)
    data = bytes(data)
    if len(data) > 16:
        return _hash_middle(data)
    return _hash_short(data)


def hex_digits(number):
    """A hash as traces have it: 16 hexadecimal digits."""
    return f"{number:016x}"


def _word(data, at, width=8):
    return int.from_bytes(data[at:at + width], "little")


def _fold(a, b):
    product = a * b
    return (product & _MASK) ^ (product >> 64)


def _avalanche(h):
    h = ((h ^ (h >> 37)) * 0x165667919E3779F9) & _MASK
    return h ^ (h >> 32)


def _old_avalanche(h):
    """That of 64-bit XXH, which the shortest inputs end with."""
    h = ((h ^ (h >> 33)) * _PRIME64[1]) & _MASK
    h = ((h ^ (h >> 29)) * _PRIME64[2]) & _MASK
    return h ^ (h >> 32)


def _rotated(h, by):
    return ((h << by) | (h >> (64 - by))) & _MASK


def _hash_short(data):
    size = len(data)
    if size > 8:
        low = _word(data, 0) ^ _word(_SECRET, 24) ^ _word(_SECRET, 32)
        high = _word(data, size - 8) ^ _word(_SECRET, 40) ^ _word(_SECRET, 48)
        swapped = int.from_bytes(low.to_bytes(8, "little"), "big")
        return _avalanche((size + swapped + high + _fold(low, high)) & _MASK)
    if size >= 4:
        words = _word(data, size - 4, 4) + (_word(data, 0, 4) << 32)
        h = words ^ _word(_SECRET, 8) ^ _word(_SECRET, 16)
        h ^= _rotated(h, 49) ^ _rotated(h, 24)
        h = (h * 0x9FB21C651E98DF25) & _MASK
        h ^= (h >> 35) + size
        h = (h * 0x9FB21C651E98DF25) & _MASK
        return h ^ (h >> 28)
    if size > 0:
        joined = (data[0] << 16) | (data[size >> 1] << 24) | data[-1] | (size << 8)
        return _old_avalanche(joined ^ _word(_SECRET, 0, 4) ^ _word(_SECRET, 4, 4))
    return _old_avalanche(_word(_SECRET, 56) ^ _word(_SECRET, 64))


def _mixed(data, at, secret):
    return _fold(_word(data, at) ^ _word(_SECRET, secret),
                 _word(data, at + 8) ^ _word(_SECRET, secret + 8))


def _hash_middle(data):
    size = len(data)
    h = size * _PRIME64[0]
    if size <= 128:
        for pair in range((size - 1) // 32 + 1):
            h += _mixed(data, 16 * pair, 32 * pair)
            h += _mixed(data, size - 16 * (pair + 1), 32 * pair + 16)
        return _avalanche(h & _MASK)
    h += sum(_mixed(data, 16 * i, 16 * i) for i in range(8))
    h = _avalanche(h & _MASK)
    h += sum(_mixed(data, 16 * i, 16 * (i - 8) + 3) for i in range(8, size // 16))
    h += _mixed(data, size - 16, 136 - 17)
    return _avalanche(h & _MASK)


def _secret_lanes(first):
    """u64 [8]: eight lanes of the secret from byte `first` on."""
    return numpy.frombuffer(_SECRET, "<u8", 8, first)


_ROWS = numpy.stack([_secret_lanes(8 * i) for i in range(_STRIPES)])  # u64 [stripe, lane]
_NEIGHBOUR = numpy.array([1, 0, 3, 2, 5, 4, 7, 6])
_LOW = numpy.uint64(0xFFFFFFFF)


def _gathered(lanes, secret):
    """What stripes add to the lanes: u64 [.., stripe, 8] -> u64 [.., 8]."""
    keyed = lanes ^ secret
    products = (keyed & _LOW) * (keyed >> numpy.uint64(32))
    return (products + lanes[..., _NEIGHBOUR]).sum(axis=-2, dtype=numpy.uint64)


def _hash_long(data):
    size = len(data)
    blocks = (size - 1) // _BLOCK
    lanes = numpy.array(_START, numpy.uint64)
    scramble = _secret_lanes(len(_SECRET) - _STRIPE)
    prime, shift = numpy.uint64(_PRIME32[0]), numpy.uint64(47)
    at_once = 256  # blocks, so that the products of a large tensor need little memory
    for first in range(0, blocks, at_once):
        count = min(at_once, blocks - first)
        words = numpy.frombuffer(data, "<u8", count * _BLOCK // 8, first * _BLOCK)
        for added in _gathered(words.reshape(count, _STRIPES, 8), _ROWS):
            lanes = lanes + added
            lanes = (lanes ^ (lanes >> shift) ^ scramble) * prime
    stripes = (size - 1 - blocks * _BLOCK) // _STRIPE
    rest = numpy.frombuffer(data, "<u8", stripes * 8, blocks * _BLOCK).reshape(stripes, 8)
    lanes = lanes + _gathered(rest, _ROWS[:stripes])
    last = numpy.frombuffer(data[size - _STRIPE:], "<u8").reshape(1, 8)
    lanes = lanes + _gathered(last, _secret_lanes(len(_SECRET) - _STRIPE - 7))
    words = [int(lane) for lane in lanes]
    h = size * _PRIME64[0]
    for i in range(0, 8, 2):
        h += _fold(words[i] ^ _word(_SECRET, 11 + 8 * i), words[i + 1] ^ _word(_SECRET, 19 + 8 * i))
    return _avalanche(h & _MASK)
