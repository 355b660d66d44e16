"""The whole Transformer, assembled from its parts: token ids in, logits out.

Axes: B sentences · R rows (hypotheses; R = B unless a beam is decoded) · S source positions · T target positions ·
D d_model · V target vocabulary.
"""

from functools import partial
from typing import TYPE_CHECKING

from jaxtyping import Float, Int
from torch import Tensor, nn

from glassformer.errors import ShapeError
from glassformer.model.attention import MultiHeadAttention
from glassformer.model.cache import Cache
from glassformer.model.config import ModelConfig
from glassformer.model.decoder import Decoder, DecoderLayer
from glassformer.model.embedding import InputEmbedding
from glassformer.model.encoder import Encoder, EncoderLayer
from glassformer.model.fast.linear import Linear
from glassformer.model.feed_forward import FeedForward
from glassformer.model.masks import padding_mask, target_mask
from glassformer.model.points import TRANSFORMER, names
from glassformer.model.positions import Positions
from glassformer.model.residual import Residual
from glassformer.model.taps import Tap

__all__ = ["Transformer"]


class Transformer(nn.Module):
    """The encoder–decoder of "Attention Is All You Need". Paper: §3, Figure 1.

    >>> import torch
    >>> model = Transformer(ModelConfig.preset("tiny", vocab_size=11))
    >>> model(source=torch.tensor([[4, 5, 6]]), target_input=torch.tensor([[1, 4]])).shape
    torch.Size([1, 2, 11])
    """

    POINTS = names(TRANSFORMER)

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.source = _input_embedding(config, config.source_vocab_size)
        self.target = _input_embedding(config, config.target_vocab_size)
        encoder_layers = (_encoder_layer(config) for _ in range(config.encoder_layers))
        decoder_layers = (_decoder_layer(config) for _ in range(config.decoder_layers))
        self.encoder = Encoder(encoder_layers, _final_norm(config))
        self.decoder = Decoder(decoder_layers, _final_norm(config))
        self.output = Linear(config.d_model, config.target_vocab_size, bias=config.output_bias)
        self.tap = Tap()
        nn.init.xavier_uniform_(self.output.weight)
        if config.output_bias:
            nn.init.zeros_(self.output.bias)
        # One matrix with up to three uses (3.4): its rows are the vectors of source tokens, the vectors of target
        # tokens, and the output weights.
        if config.tie_embeddings:
            self.target.tokens.weight = self.source.tokens.weight
        if config.tie_output:
            self.output.weight = self.target.tokens.weight

    def forward(self, source: Int[Tensor, "B S"], target_input: Int[Tensor, "B T"]) -> Float[Tensor, "B T V"]:
        """Return, for each target position, the logits of the next token, given the source and the target so far."""
        return self.decode(target_input, self.encode(source), source)

    def encode(self, source: Int[Tensor, "B S"]) -> Float[Tensor, "B S D"]:
        """Return the memory of a batch of sources.

        Raises:
            ShapeError: the ids are not a non-empty batch of sequences.
            VocabularyError: an id is not in the source vocabulary.
        """
        _check_ids("source", source)
        return self.encoder(self.source(source), padding_mask(source, self.config.pad_id))

    def decode(
        self, target_input: Int[Tensor, "B T"], memory: Float[Tensor, "B S D"], source: Int[Tensor, "B S"]
    ) -> Float[Tensor, "B T V"]:
        """Return the logits of each next token; the ids of `source` show which positions of the memory are padding.

        Raises:
            ShapeError: the shapes of ids, memory and source do not fit together.
            VocabularyError: an id is not in the target vocabulary.
        """
        return self.logits(self.decoder_output(target_input, memory, source))

    def decoder_output(
        self, target_input: Int[Tensor, "B T"], memory: Float[Tensor, "B S D"], source: Int[Tensor, "B S"]
    ) -> Float[Tensor, "B T D"]:
        """Return the decoder's output, from which `logits` computes the logits."""
        _check_ids("target_input", target_input)
        if memory.shape[:2] != source.shape or target_input.shape[0] != source.shape[0]:
            raise ShapeError(
                f"target_input {tuple(target_input.shape)}, memory {tuple(memory.shape)} and source "
                f"{tuple(source.shape)}: expected (B, T), (B, S, d_model) and (B, S) with equal B and equal S"
            )
        mask = target_mask(target_input, self.config.pad_id)
        memory_mask = padding_mask(source, self.config.pad_id)
        return self.decoder(self.target(target_input), mask, self.decoder.start(memory), memory_mask)

    def logits(self, decoder_output: Float[Tensor, "*B D"]) -> Float[Tensor, "*B V"]:
        """Return the projection of the decoder's output onto the vocabulary, before the softmax. Paper: §3.4."""
        logits = self.tap("logits", self.output(decoder_output))  # (…, D) -> (…, V)
        if not self.tap.heard():  # only listeners need this softmax: loss and search compute their own
            return logits
        log_probs = logits.log_softmax(-1)
        edited = self.tap("log_probs", log_probs)
        return logits if edited is log_probs else edited

    def start(self, source: Int[Tensor, "B S"]) -> Cache:
        """Return the cache at the start of decoding: the encoded source, and one empty row for each sentence."""
        memory_mask = padding_mask(source, self.config.pad_id)
        return Cache(self.decoder.start(self.encode(source)), memory_mask, padded=not memory_mask.all())

    def advance(self, tokens: Int[Tensor, "R"], cache: Cache) -> tuple[Float[Tensor, "R V"], Cache]:
        """Feed one more token to each row; return the logits of the next token, and the extended cache.

        A sentence of the cache may have several rows (hypotheses): R = B × rows per sentence, sentence-major. No causal
        mask is needed, because the cache holds only the past.
        """
        output, following = self.advance_output(tokens, cache)
        return self.logits(output), following

    def advance_output(self, tokens: Int[Tensor, "R"], cache: Cache) -> tuple[Float[Tensor, "R D"], Cache]:
        """Return what `advance` returns, with the decoder's output in place of the logits."""
        following = cache.next(1)
        x = self.target(tokens[:, None], start=cache.start)  # (R,) -> (R, 1, D)
        memory_mask = cache.memory_mask if cache.padded else None
        output = self.decoder(x, following.target_mask, following.layers, memory_mask)
        return output[:, 0], following  # (R, 1, D) -> (R, D)

    if TYPE_CHECKING:
        __call__ = forward


def _input_embedding(config: ModelConfig, vocab_size: int) -> InputEmbedding:
    positions = Positions(config.positions, config.d_model, config.max_length)
    return InputEmbedding(vocab_size, config.d_model, positions, config.dropout)


def _encoder_layer(config: ModelConfig) -> EncoderLayer:
    return EncoderLayer(_attention(config), _feed_forward(config), partial(_residual, config))


def _decoder_layer(config: ModelConfig) -> DecoderLayer:
    return DecoderLayer(_attention(config), _attention(config), _feed_forward(config), partial(_residual, config))


def _attention(config: ModelConfig) -> MultiHeadAttention:
    return MultiHeadAttention(config.d_model, config.heads, config.d_k, config.d_v, config.attention_dropout)


def _feed_forward(config: ModelConfig) -> FeedForward:
    return FeedForward(config.d_model, config.d_ff, config.activation, config.activation_dropout)


def _residual(config: ModelConfig, tap: Tap) -> Residual:
    return Residual(_norm(config), config.norm, config.dropout, tap)


def _final_norm(config: ModelConfig) -> nn.Module:
    return _norm(config) if config.final_norm else nn.Identity()


def _norm(config: ModelConfig) -> nn.Module:
    """Return a norm of the residual stream, (x − mean) / √(biased variance + 1e-5) · γ + β; all norms are made here."""
    return nn.LayerNorm(config.d_model)


def _check_ids(name: str, ids: Tensor) -> None:
    if ids.dim() != 2 or 0 in ids.shape:
        raise ShapeError(f"{name}: expected a non-empty shape (batch, length), got {tuple(ids.shape)}")
