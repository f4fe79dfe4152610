// Encoders of text and of images. Defaults as in decoders.cpp.
#include "models/families/family.hpp"

namespace rehearse::families {
namespace {

constexpr std::string_view kEncoderOnly[] = {"is_decoder=false", "add_cross_attention=false",
                                             "position_embedding_type=absolute"};
constexpr std::string_view kNoConvolution[] = {"conv_kernel_size=0"};

// BERT's block has its norms behind the sums; that a norm stands before a part or behind it costs the same.
constexpr Family kBert = {.type = "bert",
                          .sizes = {768, 3072, 12, 12, 30'522, 512},
                          .gated = false,
                          .activation_otherwise = "gelu",
                          .positions = PositionKind::learned,
                          .token_types = {2, "type_vocab_size"},
                          .tied = kTied,
                          .biases = kAlways,
                          .qkv_biases = kAlways,
                          .projection_bias = kAlways,
                          .norm_biases = kAlways,
                          .final_norm = {false},
                          .embedding_norm = kAlways,
                          .embedding_dropout = {0.1, "hidden_dropout_prob"},
                          .attention_dropout = {0.1, "attention_probs_dropout_prob"},
                          .dropout = {0.1, "hidden_dropout_prob"},
                          .encoder = {.is = true, .pooler = true, .classifier_pooler = true},
                          .only = kEncoderOnly};

constexpr Family roberta(std::string_view type, double vocabulary, double types) {
  Family family = kBert;
  family.type = type;
  family.sizes.vocabulary = vocabulary;
  family.position_rows = -2;  // max_position_embeddings counts two rows for padding
  family.token_types.otherwise = types;
  return family;
}

constexpr Family electra() {
  Family family = kBert;
  family.type = "electra";
  family.sizes = {256, 1024, 12, 4, 30'522, 512};
  family.embedding_width = {128, "embedding_size"};
  family.narrow_positions = true;
  family.encoder = {.is = true, .pooler = false, .classifier_pooler = true, .token_pooler = true};
  return family;
}

constexpr Family distilbert() {
  Family family = kBert;
  family.type = "distilbert";
  family.keys = {.hidden = "dim|hidden_size",
                 .layers = "n_layers|num_hidden_layers",
                 .heads = "n_heads|num_attention_heads",
                 .inner = "hidden_dim|intermediate_size"};
  family.sizes = {768, 3072, 6, 12, 30'522, 512};
  family.activation_otherwise = "gelu";
  family.token_types = {};
  family.embedding_dropout = {0.1, "dropout"};
  family.dropout = {0.1, "dropout"};
  family.attention_dropout = {0.1, "attention_dropout"};
  family.encoder.pooler = false;
  return family;
}

constexpr Family deberta(std::string_view type, const FamilySizes& sizes, double types, bool first) {
  Family family = kBert;
  family.type = type;
  family.sizes = sizes;
  family.token_types = {types, "type_vocab_size"};
  family.alibi = {false, "!position_biased_input"};  // no table beside the relative one
  family.relative = {false, "relative_attention"};
  family.relative_weights = {true, first ? Keys{} : Keys{"!share_att_key"}};
  family.encoder.pooler = false;
  family.only = kNoConvolution;
  return family;
}

constexpr Family kEncoders[] = {
    kBert,
    roberta("camembert", 30'522, 2),
    roberta("roberta", 50'265, 2),
    roberta("xlm-roberta", 30'522, 2),
    roberta("xlm-roberta-xl", 250'880, 1),
    deberta("deberta", {768, 3072, 12, 12, 50'265, 512}, 0, true),
    deberta("deberta-v2", {1536, 6144, 24, 24, 128'100, 512}, 0, false),
    distilbert(),
    electra(),
    {.type = "modernbert",
     .sizes = {768, 1152, 22, 12, 50'368, 8192},
     .activation_otherwise = "gelu",
     .tied = kTied,
     .biases = {false, "mlp_bias"},
     .qkv_biases = {false, "attention_bias"},
     .projection_bias = {false, "attention_bias"},
     .norm_biases = {false, "norm_bias"},
     .embedding_norm = kAlways,
     .embedding_dropout = {0, "embedding_dropout"},
     .dropout = {0, "mlp_dropout"},
     .window = {.width = "local_attention",
                .otherwise = 128,
                .full_every = 3,
                .full_offset = 1,
                .every = "global_attn_every_n_layers"},
     .encoder = {.is = true}},
    {.type = "vit",
     .sizes = {768, 3072, 12, 12, 0, 0},
     .gated = false,
     .activation_otherwise = "gelu",
     .positions = PositionKind::learned,
     .tied = {false},
     .biases = kAlways,
     .qkv_biases = {true, "qkv_bias"},
     .projection_bias = kAlways,
     .norm_biases = kAlways,
     .embedding_dropout = {0, "hidden_dropout_prob"},
     .attention_dropout = {0, "attention_probs_dropout_prob"},
     .dropout = {0, "hidden_dropout_prob"},
     .encoder = {.is = true, .pooler = true, .classifier_pooler = false},
     .image_size = {224, "image_size"},
     .patch_size = {16, "patch_size"},
     .image_channels = {3, "num_channels"}},
};

}  // namespace

std::span<const Family> encoder_families() {
  return kEncoders;
}

}  // namespace rehearse::families
