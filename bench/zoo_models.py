"""Architectures of the zoo: name -> a small random instance, its inputs and its labels.

Each entry is `family, make`, where make() gives `(module, inputs, labels, loss)`: inputs a dict of
tensors by the module's argument names, each with BATCH examples first, labels for `loss`, which is
cross_entropy (over the last axis of [N, C] or [N, T, V] logits) or mse. Modules give one tensor.
"""
import torch
from torch import nn

BATCH = 9
CLASSES = 10
VOCAB = 61
ZOO = {}


def entry(name, family):
    def add(make):
        ZOO[name] = (family, make)
        return make
    return add


def images(size, channels=3):
    return {"x": torch.randn(BATCH, channels, size, size)}


def classes():
    return torch.randint(0, CLASSES, (BATCH,))


def tokens(length, vocab=VOCAB):
    return torch.randint(3, vocab, (BATCH, length))  # none that some model takes for padding


class One(nn.Module):
    """The first tensor of what a module gives, by argument names of our own."""

    def __init__(self, module, arguments, pick):
        super().__init__()
        self.module, self.arguments, self.pick = module, arguments, pick

    def forward(self, *given):
        return self.pick(self.module(**dict(zip(self.arguments, given))))


# Plain PyTorch.


def plain(name, inputs, labels, loss="cross_entropy"):
    """The module that the function makes, with these inputs."""
    def add(make):
        ZOO[name] = ("plain", lambda: (make(), inputs(), labels(), loss))
        return make
    return add


def vector(width):
    return lambda: {"x": torch.randn(BATCH, width)}


def target(*shape):
    return lambda: torch.randn(BATCH, *shape)


@plain("mlp", vector(12), classes)
def _():
    return nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, CLASSES))


@plain("mlp_norms", vector(12), classes)
def _():
    return nn.Sequential(nn.Linear(12, 32), nn.LayerNorm(32), nn.GELU(), nn.Linear(32, 32),
                         nn.LayerNorm(32), nn.Tanh(), nn.Linear(32, CLASSES))


class Affine(nn.Module):
    """alpha * x + beta, as a residual MLP has it (Touvron et al., 2021)."""

    def __init__(self, size):
        super().__init__()
        self.alpha = nn.Parameter(torch.ones(1, size))
        self.beta = nn.Parameter(torch.zeros(1, size))

    def forward(self, x):
        return torch.addcmul(self.beta, self.alpha, x)


class Multiplied(nn.Module):
    """A linear layer whose call is given the bias first."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inputs, outputs) * 0.3)
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        return torch.addmm(self.bias, x, self.weight)


@plain("affine_mlp", vector(12), classes)
def _():
    return nn.Sequential(nn.Linear(12, 32), Affine(32), nn.GELU(), Multiplied(32, 32), Affine(32),
                         nn.Tanh(), Multiplied(32, 32), Affine(32), nn.Linear(32, CLASSES))


@plain("mlp_batch_norm", vector(12), classes)
def _():
    return nn.Sequential(nn.Linear(12, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 32),
                         nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, CLASSES))


@plain("activations", vector(12), target(4), "mse")
def _():
    kinds = [nn.ELU, nn.SELU, nn.CELU, nn.Hardswish, nn.Hardsigmoid, nn.Mish, nn.Softplus,
             nn.Softsign, nn.SiLU, nn.LogSigmoid, nn.Tanhshrink, nn.ReLU6, nn.Hardtanh, nn.PReLU,
             nn.LeakyReLU]
    layers = [layer for kind in kinds for layer in (nn.Linear(12, 12), kind())]
    return nn.Sequential(*layers, nn.Linear(12, 4))


@plain("lenet", lambda: images(28, 1), classes)
def _():
    return nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(6, 16, 5), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(),
                         nn.Linear(400, 32), nn.ReLU(), nn.Linear(32, CLASSES))


@plain("conv_batch_norm", lambda: images(16), classes)
def _():
    return nn.Sequential(nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(),
                         nn.Conv2d(8, 8, 3, groups=2), nn.BatchNorm2d(8), nn.Hardswish(),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, CLASSES))


@plain("norms", lambda: images(12), classes)
def _():
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.GroupNorm(4, 8), nn.SiLU(), nn.Conv2d(8, 8, 3),
                         nn.InstanceNorm2d(8, affine=True), nn.ReLU(), nn.LocalResponseNorm(3),
                         nn.Conv2d(8, 8, 3), nn.GroupNorm(4, 8), nn.Flatten(),
                         nn.Linear(288, CLASSES))


@plain("autoencoder", lambda: images(16), lambda: torch.randn(BATCH, 3, 16, 16), "mse")
def _():
    return nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.ReLU(),
                         nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.ReLU(),
                         nn.ConvTranspose2d(16, 8, 4, stride=2, padding=1), nn.ReLU(),
                         nn.Upsample(scale_factor=2, mode="bilinear"),
                         nn.Conv2d(8, 3, 3, padding=1))


@plain("text_cnn", lambda: {"ids": tokens(20)}, classes)
def _():
    class TextCnn(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(VOCAB, 16)
            self.convolutions = nn.ModuleList(nn.Conv1d(16, 12, k) for k in (3, 4, 5))
            self.head = nn.Linear(36, CLASSES)

        def forward(self, ids):
            x = self.table(ids).transpose(1, 2)
            return self.head(torch.cat([torch.relu(c(x)).amax(2) for c in self.convolutions], 1))
    return TextCnn()


@plain("transformer_encoder", lambda: {"ids": tokens(12)}, classes)
def _():
    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(VOCAB, 32)
            self.place = nn.Parameter(torch.randn(12, 32) * 0.1)
            layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True,
                                               norm_first=True)
            self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            self.head = nn.Linear(32, CLASSES)

        def forward(self, ids):
            return self.head(self.layers(self.table(ids) + self.place).mean(1))
    return Encoder()


@plain("tied_language_model", lambda: {"ids": tokens(12)}, lambda: tokens(12))
def _():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(VOCAB, 32)
            self.mix = nn.Linear(32, 32)
            self.norm = nn.LayerNorm(32)
            self.head = nn.Linear(32, VOCAB, bias=False)
            self.head.weight = self.table.weight

        def forward(self, ids):
            x = self.table(ids)
            mask = torch.triu(torch.full((12, 12), float("-inf")), 1)
            weights = torch.softmax(x @ x.transpose(1, 2) * 0.2 + mask, -1)
            return self.head(self.norm(x + self.mix(weights @ x)))
    return Tied()


@plain("fourier_features", vector(3), target(2), "mse")
def _():
    class Fourier(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("frequencies", torch.randn(3, 8))
            self.net = nn.Sequential(nn.Linear(16, 32), nn.SiLU(), nn.Linear(32, 2))

        def forward(self, x):
            angles = 2.0 * x @ self.frequencies
            return self.net(torch.cat([angles.sin(), angles.cos()], -1)) * 0.5
    return Fourier()


@plain("contrastive_scale", vector(12), classes)
def _():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.left = nn.Linear(12, 16)
            self.anchors = nn.Parameter(torch.randn(CLASSES, 16))
            self.logit_scale = nn.Parameter(torch.tensor(1.5))

        def forward(self, x):
            a = nn.functional.normalize(self.left(x), dim=-1)
            b = nn.functional.normalize(self.anchors, dim=-1)
            return self.logit_scale.exp() * a @ b.t()
    return Scaled()


@plain("squeeze_excite", lambda: images(12), classes)
def _():
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 8, 3, padding=1)
            self.wide = nn.Conv2d(8, 8, 3, padding=1, groups=8)
            self.down, self.up = nn.Conv2d(8, 4, 1), nn.Conv2d(4, 8, 1)
            self.head = nn.Linear(8, CLASSES)

        def forward(self, x):
            x = self.wide(torch.relu(self.conv(x)))
            gate = torch.sigmoid(self.up(torch.relu(self.down(x.mean((2, 3), keepdim=True)))))
            return self.head((x * gate).amax((2, 3)))
    return Block()


@plain("dilated_time_net", lambda: {"x": torch.randn(BATCH, 4, 40)}, target(4, 40), "mse")
def _():
    class TimeNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Conv1d(4, 8, 1)
            self.filters = nn.ModuleList(nn.Conv1d(8, 16, 2, dilation=d) for d in (1, 2, 4))
            self.mixes = nn.ModuleList(nn.Conv1d(8, 8, 1) for _ in range(3))
            self.last = nn.Conv1d(8, 4, 1)

        def forward(self, x):
            x = self.first(x)
            for d, wide, mix in zip((1, 2, 4), self.filters, self.mixes):
                a, b = wide(nn.functional.pad(x, (d, 0))).chunk(2, 1)
                x = x + mix(a.tanh() * b.sigmoid())
            return self.last(x)
    return TimeNet()


@plain("masked_pooling", lambda: {"x": torch.randn(BATCH, 10, 6),
                                  "mask": (torch.rand(BATCH, 10) > 0.3).long()}, classes)
def _():
    class Pooled(nn.Module):
        def __init__(self):
            super().__init__()
            self.score, self.value = nn.Linear(6, 1), nn.Linear(6, 16)
            self.head = nn.Linear(16, CLASSES)

        def forward(self, x, mask):
            scores = self.score(x).squeeze(-1).masked_fill(mask == 0, -1e9)
            return self.head((scores.softmax(-1).unsqueeze(-1) * self.value(x)).sum(1))
    return Pooled()


@plain("weight_norm", vector(12), classes)
def _():
    wrap = nn.utils.parametrizations.weight_norm
    return nn.Sequential(wrap(nn.Linear(12, 16)), nn.ReLU(), wrap(nn.Linear(16, CLASSES)))


@plain("powers", vector(6), target(3), "mse")
def _():
    class Powers(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(6, 8), nn.Linear(8, 3)

        def forward(self, x):
            h = self.a(x)
            h = h ** 3 * 0.1 + h ** 2 / 3.0 - h.abs().clamp(0.1, 2.0).sqrt() + h.clamp(-1, 1)
            return self.b(torch.where(h > 0.2, h, torch.full_like(h, 0.2)))
    return Powers()


# torchvision.


def vision(name, size, **options):
    def make():
        import torchvision
        function = getattr(torchvision.models, name)
        module = function(weights=None, num_classes=CLASSES, **options)
        pick = (lambda y: y) if not hasattr(module, "aux_logits") else (
            lambda y: y if isinstance(y, torch.Tensor) else y[0])
        return One(module, ["x"], pick), images(size), classes(), "cross_entropy"
    ZOO[f"torchvision.{name}"] = (name.split("_")[0].rstrip("0123456789"), make)


for _name, _size in {
        "alexnet": 64, "vgg11": 32, "vgg11_bn": 32, "resnet18": 32, "resnet50": 32,
        "resnext50_32x4d": 32, "wide_resnet50_2": 32, "densenet121": 32, "squeezenet1_1": 32,
        "mobilenet_v2": 32, "mobilenet_v3_small": 32, "shufflenet_v2_x0_5": 32, "mnasnet0_5": 32,
        "efficientnet_b0": 32, "regnet_y_400mf": 32, "regnet_x_400mf": 32, "convnext_tiny": 32,
        "swin_t": 32}.items():
    vision(_name, _size)
vision("googlenet", 64, aux_logits=False, init_weights=True)


@entry("torchvision.vit", "vit")
def _():
    from torchvision.models import VisionTransformer
    module = VisionTransformer(image_size=32, patch_size=8, num_layers=2, num_heads=4,
                               hidden_dim=32, mlp_dim=64, num_classes=CLASSES)
    nn.init.normal_(module.heads.head.weight, std=0.1)
    return One(module, ["x"], lambda y: y), images(32), classes(), "cross_entropy"


# timm.


def timm_model(name, size, **options):
    def make():
        import timm
        module = timm.create_model(name, pretrained=False, num_classes=CLASSES, **options)
        return One(module, ["x"], lambda y: y), images(size), classes(), "cross_entropy"
    ZOO[f"timm.{name}"] = (name.split("_")[0].rstrip("0123456789"), make)


for _name, _size in {
        "resnet10t": 32, "seresnet18": 32, "ecaresnet26t": 32, "skresnet18": 32, "cspresnet50": 32,
        "convnext_atto": 32, "convnextv2_atto": 32, "mobilenetv4_conv_small": 32,
        "ghostnet_050": 32, "lcnet_050": 32, "tinynet_e": 32, "rexnet_100": 32, "repvgg_a0": 32,
        "dla34": 32, "ese_vovnet19b_dw": 32, "res2net50_26w_4s": 32, "hardcorenas_a": 32,
        "efficientvit_b0": 32, "poolformer_s12": 32, "edgenext_xx_small": 64, "fastvit_t8": 64,
        "starnet_s1": 32, "inception_next_atto": 32, "mobilevit_xxs": 64, "regnetz_005": 32,
        "nf_regnet_b0": 32, "visformer_tiny": 64, "pvt_v2_b0": 64}.items():
    timm_model(_name, _size)
timm_model("test_resnet", 32, channels=(8, 12, 16, 24))
for _name, _options in {
        "vit_tiny_patch16_224": {"depth": 2}, "deit_tiny_patch16_224": {"depth": 2},
        "cait_xxs24_224": {"depth": 2}, "mixer_s32_224": {}, "resmlp_12_224": {},
        "gmlp_ti16_224": {}, "xcit_nano_12_p16_224": {}, "beit_base_patch16_224": {
            "depth": 2, "embed_dim": 48, "num_heads": 4},
        "eva02_tiny_patch14_224": {"depth": 2, "patch_size": 16}}.items():
    timm_model(_name, 32, img_size=32, **_options)


# transformers, with small random configurations.


def language(name, config, model, inputs, pick, label, **options):
    def make():
        import transformers
        settings = getattr(transformers, config)(**options)
        settings._attn_implementation = "eager"
        module = getattr(transformers, model)(settings)
        given = inputs()
        return One(module, list(given), pick), given, label(), "cross_entropy"
    ZOO[f"transformers.{name}"] = (name, make)


def text(length=12):
    return {"input_ids": tokens(length)}


def masked_text(length=12):
    mask = torch.ones(BATCH, length, dtype=torch.long)
    for row in range(BATCH):
        mask[row, length - row % 4:] = 0
    return {"input_ids": tokens(length), "attention_mask": mask}


def logits(y):
    return y.logits


_ENCODER = dict(vocab_size=VOCAB, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                intermediate_size=64, max_position_embeddings=40, num_labels=CLASSES,
                hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
for _name, _prefix in {"bert": "Bert", "roberta": "Roberta", "electra": "Electra",
                       "albert": "Albert", "mpnet": "MPNet", "deberta_v2": "DebertaV2",
                       "convbert": "ConvBert", "xlm_roberta": "XLMRoberta"}.items():
    language(_name, f"{_prefix}Config", f"{_prefix}ForSequenceClassification", masked_text, logits,
             classes, **_ENCODER, **({"embedding_size": 32} if _name in ("electra", "albert")
                                     else {}))
language("distilbert", "DistilBertConfig", "DistilBertForSequenceClassification", masked_text,
         logits, classes, vocab_size=VOCAB, dim=32, n_layers=2, n_heads=4, hidden_dim=64,
         max_position_embeddings=40, dropout=0.0, attention_dropout=0.0, seq_classif_dropout=0.0,
         num_labels=CLASSES)

_DECODER = dict(vocab_size=VOCAB, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                intermediate_size=64, max_position_embeddings=40, attention_dropout=0.0,
                use_cache=False)
for _name, _prefix in {"llama": "Llama", "mistral": "Mistral", "qwen2": "Qwen2", "phi": "Phi",
                       "gemma": "Gemma", "stablelm": "StableLm", "olmo": "Olmo",
                       "gpt_neox": "GPTNeoX", "qwen3": "Qwen3"}.items():
    _more = {"head_dim": 8} if _name in ("gemma", "qwen3") else {}
    if _name in ("mistral", "qwen2", "qwen3", "stablelm", "gemma"):
        _more["num_key_value_heads"] = 2
    language(_name, f"{_prefix}Config", f"{_prefix}ForCausalLM", text, logits,
             lambda: tokens(12), **_DECODER, **_more, pad_token_id=0)
language("gpt2", "GPT2Config", "GPT2LMHeadModel", text, logits, lambda: tokens(12),
         vocab_size=VOCAB, n_embd=32, n_layer=2, n_head=4, n_positions=40, resid_pdrop=0.0,
         embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False)
language("opt", "OPTConfig", "OPTForCausalLM", text, logits, lambda: tokens(12), vocab_size=VOCAB,
         hidden_size=32, num_hidden_layers=2, num_attention_heads=4, ffn_dim=64, dropout=0.0,
         attention_dropout=0.0, max_position_embeddings=40, word_embed_proj_dim=32,
         use_cache=False)
language("bloom", "BloomConfig", "BloomForCausalLM", text, logits, lambda: tokens(12),
         vocab_size=VOCAB, hidden_size=32, n_layer=2, n_head=4, hidden_dropout=0.0,
         attention_dropout=0.0, use_cache=False)
language("t5", "T5Config", "T5ForConditionalGeneration",
         lambda: {"input_ids": tokens(12), "decoder_input_ids": tokens(8)}, logits,
         lambda: tokens(8), vocab_size=VOCAB, d_model=32, d_kv=8, d_ff=64, num_layers=2,
         num_heads=4, dropout_rate=0.0, use_cache=False)
language("bart", "BartConfig", "BartForConditionalGeneration",
         lambda: {"input_ids": tokens(12), "decoder_input_ids": tokens(8)}, logits,
         lambda: tokens(8), vocab_size=VOCAB, d_model=32, encoder_layers=2, decoder_layers=2,
         encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64,
         decoder_ffn_dim=64, dropout=0.0, attention_dropout=0.0, activation_dropout=0.0,
         max_position_embeddings=40, use_cache=False)


def pixels(size=32):
    return {"pixel_values": torch.randn(BATCH, 3, size, size)}


_IMAGE = dict(image_size=32, patch_size=8, hidden_size=32, num_hidden_layers=2,
              num_attention_heads=4, intermediate_size=64, num_labels=CLASSES,
              hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
for _name, _prefix in {"vit": "ViT", "deit": "DeiT", "beit": "Beit", "dinov2": "Dinov2"}.items():
    language(_name, f"{_prefix}Config", f"{_prefix}ForImageClassification", pixels, logits,
             classes, **_IMAGE, **({"drop_path_rate": 0.0} if _name == "beit" else {}))
language("segformer", "SegformerConfig", "SegformerForImageClassification", lambda: pixels(64),
         logits, classes, num_labels=CLASSES, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1],
         num_attention_heads=[1, 2, 2, 4], drop_path_rate=0.0, hidden_dropout_prob=0.0,
         attention_probs_dropout_prob=0.0, classifier_dropout_prob=0.0)
language("mobilebert", "MobileBertConfig", "MobileBertForSequenceClassification", masked_text,
         logits, classes, vocab_size=VOCAB, hidden_size=64, num_hidden_layers=2,
         num_attention_heads=4, intermediate_size=64, intra_bottleneck_size=32, embedding_size=32,
         max_position_embeddings=40, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
         num_labels=CLASSES)
language("xlnet", "XLNetConfig", "XLNetForSequenceClassification", text, logits, classes,
         vocab_size=VOCAB, d_model=32, n_layer=2, n_head=4, d_inner=64, dropout=0.0,
         summary_last_dropout=0.0, num_labels=CLASSES)
language("funnel", "FunnelConfig", "FunnelForSequenceClassification", text, logits, classes,
         vocab_size=VOCAB, d_model=32, n_head=4, d_head=8, d_inner=64, block_sizes=[1, 1],
         hidden_dropout=0.0, attention_dropout=0.0, activation_dropout=0.0, num_labels=CLASSES)
