"""Shortening the module keeps the order in which constants are made: the shortener is known to swap two of them."""

from collections.abc import Iterator

import pytest
from tree_sitter import Language, Node, Parser
from tree_sitter_javascript import language

from glassformer.explorer.module import explorer_module

FUNCTIONS = {"arrow_function", "function_declaration", "function_expression", "method_definition", "generator_function"}


def tree(text: str) -> Node:
    return Parser(Language(language())).parse(text.encode()).root_node


def nodes(node: Node, *, inside_functions: bool = True) -> Iterator[Node]:
    """Yield a node and all below it; what stands inside of functions may run later."""
    yield node
    for child in node.children:
        if inside_functions or child.type not in FUNCTIONS:
            yield from nodes(child, inside_functions=inside_functions)


def bound(pattern: Node) -> set[bytes]:
    """Return the names that a declaration's left side makes."""
    kinds = ("identifier", "shorthand_property_identifier_pattern")
    return {node.text for node in nodes(pattern) if node.type in kinds}


def used(expression: Node | None) -> set[bytes]:
    """Return the names that an expression reads when it is reached."""
    if expression is None or expression.type in FUNCTIONS:
        return set()
    kinds = ("identifier", "shorthand_property_identifier")
    return {node.text for node in nodes(expression, inside_functions=False) if node.type in kinds}


def read_too_early(text: str) -> list[str]:
    """Return the names that a block reads before it makes them."""
    found: list[str] = []
    for block in nodes(tree(text)):
        declared = [
            declarator
            for statement in block.children
            if statement.type == "lexical_declaration"
            for declarator in statement.children
            if declarator.type == "variable_declarator"
        ]
        later: set[bytes] = set()
        for declarator in reversed(declared):
            later |= bound(declarator.child_by_field_name("name"))
            found += [name.decode() for name in used(declarator.child_by_field_name("value")) & later]
    return found


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("{ const [a, b] = [box.left, 1], box = f(); }", ["box"]),
        ("{ const { a = c } = d; const c = 1; }", []),  # defaults of patterns are not looked into
        ("{ const a = () => b; const b = 1; }", []),
        ("{ const a = x.b; const b = 1; }", []),
        ("{ const a = { b }; const b = 1; }", ["b"]),
    ],
)
def test_the_search_for_names_that_are_read_too_early_finds_them(text, names):
    assert read_too_early(text) == names


def test_no_constant_is_read_before_it_is_made():
    assert read_too_early(explorer_module()) == []
