#!/usr/bin/python3
"""Images a second that the reader of image folders decodes on one thread, in bench/results.

    bench/images.py [--images 3000] [--name images]

Folders of PNG and of JPEG files (quality 90) are made of random colours, smoothed, as photographs are,
and as they come, which no file compresses. The files are in the page cache: what is measured is
opening, decoding and making floats of them. Needs numpy and Pillow.
"""
import argparse
import json
import subprocess
import tempfile
from pathlib import Path

import numpy
from PIL import Image

import measure

SHAPES = [(32, 32), (224, 224), (256, 224)]  # of the files, of the model's input


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=3000, help="of 32 x 32; larger ones are a tenth")
    parser.add_argument("--name", default="images", help="of the files: DATE-NAME.md")
    parser.add_argument("--bench", type=Path, default=measure.ROOT / "build/release/bin/images_bench")
    parser.add_argument("--out", type=Path, default=measure.RESULTS)
    return parser.parse_args()


def picture(random, side, smooth):
    if not smooth:
        return random.integers(0, 256, (side, side, 3), dtype=numpy.uint8)
    coarse = random.integers(0, 256, (side // 8, side // 8, 3), dtype=numpy.uint8)
    return numpy.asarray(Image.fromarray(coarse).resize((side, side), Image.BICUBIC))


def make_folder(folder, images, side, ending, smooth):
    random = numpy.random.default_rng(1)
    for i in range(images):
        place = folder / f"class{i % 10}"
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture(random, side, smooth)).save(place / f"{i:05}.{ending}", quality=90)


def main():
    options = arguments()
    runs = []
    for side, wanted in SHAPES:
        images = options.images if side == 32 else options.images // 10
        for ending in ("png", "jpg"):
            for smooth in (True, False):
                with tempfile.TemporaryDirectory(prefix="trainscope-images-") as name:
                    folder = Path(name) / "images"
                    make_folder(folder, images, side, ending, smooth)
                    source = f"images:{folder}" + (",resize=cover" if side != wanted else "")
                    line = subprocess.run([options.bench, source, str(wanted)], check=True,
                                          capture_output=True, text=True).stdout
                runs.append({"side": side, "input": wanted, "kind": ending,
                             "colours": "smooth" if smooth else "noise", "images": images,
                             "images_per_second": json.loads(line)["images_per_second"]})
                print(runs[-1], flush=True)
    rows = [[run["kind"], f"{run['side']} x {run['side']}", f"{run['input']} x {run['input']}",
             run["colours"], run["images"], f"{run['images_per_second']:,}"] for run in runs]
    body = measure.table(["files", "of", "as input", "colours", "images", "images a second, one thread"],
                         rows)
    facts = {"command": f"bench/images.py --images {options.images}", "runs": runs}
    measure.write_report(options.name, "Images decoded a second", body, facts, options.out)


if __name__ == "__main__":
    main()
