"""Architectures of the zoo: ZOO has all of them, here are those of torchvision, timm and transformers.

Each is a small random instance with its inputs and its labels (zoo_entries.py).
"""
import torch
from torch import nn

import zoo_bench  # noqa: F401  (adds its own)
import zoo_modules  # noqa: F401  (adds its own)
from zoo_entries import BATCH, CLASSES, VOCAB, ZOO, One, classes, entry, images, tokens

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
