# Step 1: attention
import math

import torch
from torch import nn


def attention(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(-1)
    weights = weights.masked_fill(~mask, 0.0)  # where a row is False everywhere, its softmax is 0/0
    return weights @ value, weights


# Step 2: MultiHeadAttention
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, heads):
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)
        self.output = nn.Linear(d_model, d_model)

    def forward(self, x, memory, mask):
        query = self.split(self.query(x))
        key = self.split(self.key(memory))
        value = self.split(self.value(memory))
        heads, _ = attention(query, key, value, mask)
        return self.output(heads.transpose(1, 2).flatten(2))

    def split(self, x):
        batch, length, d_model = x.shape
        return x.view(batch, length, self.heads, d_model // self.heads).transpose(1, 2)


# Step 3: positions
def positions(length, d_model):
    position = torch.arange(length)[:, None]
    pair = torch.arange(0, d_model, 2)
    angles = position / 10000 ** (pair / d_model)
    table = torch.zeros(length, d_model)
    table[:, 0::2] = angles.sin()
    table[:, 1::2] = angles.cos()
    return table


# Step 4: FeedForward
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.expand = nn.Linear(d_model, d_ff)
        self.contract = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.contract(self.expand(x).relu())


# Step 5: EncoderLayer
class EncoderLayer(nn.Module):
    def __init__(self, d_model, heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, heads)
        self.self_attention_norm = nn.LayerNorm(d_model)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.feed_forward_norm = nn.LayerNorm(d_model)

    def forward(self, x, mask):
        x = self.self_attention_norm(x + self.self_attention(x, x, mask))
        return self.feed_forward_norm(x + self.feed_forward(x))


# Step 6: DecoderLayer
class DecoderLayer(nn.Module):
    def __init__(self, d_model, heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, heads)
        self.self_attention_norm = nn.LayerNorm(d_model)
        self.cross_attention = MultiHeadAttention(d_model, heads)
        self.cross_attention_norm = nn.LayerNorm(d_model)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.feed_forward_norm = nn.LayerNorm(d_model)

    def forward(self, x, memory, mask, memory_mask):
        x = self.self_attention_norm(x + self.self_attention(x, x, mask))
        x = self.cross_attention_norm(x + self.cross_attention(x, memory, memory_mask))
        return self.feed_forward_norm(x + self.feed_forward(x))


# Step 7: source_mask, target_mask
def source_mask(source):
    return (source != 0)[:, None, None, :]


def target_mask(target):
    length = target.shape[1]
    causal = target.new_ones(length, length, dtype=torch.bool).tril()  # on the target's device
    return source_mask(target) & causal


# Step 8: Transformer
class Transformer(nn.Module):
    def __init__(self, vocab_size, d_model, heads, d_ff, layers):
        super().__init__()
        self.source_embedding = nn.Embedding(vocab_size, d_model)
        self.target_embedding = nn.Embedding(vocab_size, d_model)
        for embedding in (self.source_embedding, self.target_embedding):
            nn.init.normal_(embedding.weight, std=d_model**-0.5)  # N(0, 1) · √d_model would drown the positions
        self.encoder = nn.ModuleList(EncoderLayer(d_model, heads, d_ff) for _ in range(layers))
        self.decoder = nn.ModuleList(DecoderLayer(d_model, heads, d_ff) for _ in range(layers))
        self.output = nn.Linear(d_model, vocab_size)

    def embed(self, embedding, ids):
        x = embedding(ids) * math.sqrt(embedding.embedding_dim)
        return x + positions(*x.shape[1:]).to(x)  # on the device of x

    def encode(self, source):
        x = self.embed(self.source_embedding, source)
        for layer in self.encoder:
            x = layer(x, source_mask(source))
        return x

    def decode(self, target_input, memory, source):
        x = self.embed(self.target_embedding, target_input)
        for layer in self.decoder:
            x = layer(x, memory, target_mask(target_input), source_mask(source))
        return self.output(x)

    def forward(self, source, target_input):
        return self.decode(target_input, self.encode(source), source)


# Step 9: loss
def loss(logits, target):
    log_probs = logits.log_softmax(-1)
    right = log_probs.gather(-1, target[..., None])[..., 0]
    return -right[target != 0].mean()


# Step 10: greedy
@torch.no_grad()
def greedy(model, source, length):
    memory = model.encode(source)
    written = source.new_ones(len(source), 1)
    for _ in range(length):
        logits = model.decode(written, memory, source)
        written = torch.cat([written, logits[:, -1:].argmax(-1)], dim=1)
    return written[:, 1:]


# Step 11: train
def train():
    model = Transformer(vocab_size=13, d_model=64, heads=4, d_ff=128, layers=2)
    optimiser = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98))
    for step in range(600):
        optimiser.param_groups[0]["lr"] = 2e-3 * min((step + 1) / 100, 1 - step / 600)
        target = torch.randint(3, 13, (64, 11))
        target[:, -1] = 2  # <eos>
        target_input = torch.cat([torch.ones(64, 1, dtype=torch.long), target[:, :-1]], dim=1)
        optimiser.zero_grad()
        loss(model(target, target_input), target).backward()
        optimiser.step()
    return model
