"""Pictures of data, readable on light and dark backgrounds, each with a text alternative."""

from glassformer.pictures.drawings import Box, attention_lines, bars, curves, flow, heat_map
from glassformer.pictures.picture import BLUE, GREEN, GREY, ORANGE, PALETTE, PURPLE, RED, Picture, canvas, picture
from glassformer.pictures.player import Player, player

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
