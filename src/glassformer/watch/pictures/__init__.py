"""Pictures of data, readable on light and dark backgrounds, each with a text alternative."""

from glassformer.watch.pictures.drawings import Box, attention_lines, bars, curves, flow, heat_map
from glassformer.watch.pictures.picture import BLUE, GREEN, GREY, ORANGE, PALETTE, PURPLE, RED, Picture, canvas, picture
from glassformer.watch.pictures.player import Player, player

__all__ = [
    "BLUE",
    "GREEN",
    "GREY",
    "ORANGE",
    "PALETTE",
    "PURPLE",
    "RED",
    "Box",
    "Picture",
    "Player",
    "attention_lines",
    "bars",
    "canvas",
    "curves",
    "flow",
    "heat_map",
    "picture",
    "player",
]
