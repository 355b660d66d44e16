"""The beam tree: the numbers of each node add up, and the length penalty ranks outputs as Python does."""

import re
from typing import Any

import pytest

from browser.waiting import open_panel
from glassformer.decoding import length_penalty

SENTENCE = "the black cat sleeps ."
SAID = """() => [...document.querySelectorAll(".gf-node")].map((node) => {
  node.focus();
  const number = (one) => one?.lastChild.textContent;
  const [text, sum, last] = document.querySelector(".gf-path").children;
  return {
    id: Number(node.dataset.node), name: node.getAttribute("aria-label"), kind: node.className, text: text.innerText,
    terms: [...sum?.querySelectorAll(":scope > span") ?? []].map(number),
    total: number(sum?.querySelector("b")), score: number(last?.querySelector("b")),
  };
})"""
SEARCH = "(({ search, hypothesis }) => ({ ...search, best: hypothesis }))(glassformer.app.result.current)"


@pytest.fixture
def beam(make_translator, explore):
    """Return a page that shows the beam tree of a search whose hypotheses differ in length."""
    page = explore(make_translator(), SENTENCE)
    open_panel(page, "beam")
    page.locator(".gf-node").first.wait_for()
    return page


def number(text: str) -> float:
    return float(text.replace("−", "-"))


def path(tree: list[Any], id: int) -> list[Any]:
    nodes = []
    while tree[id]["parent"] is not None:
        nodes.append(tree[id])
        id = tree[id]["parent"]
    return nodes[::-1]


def ranked(tree: list[Any], alpha: float) -> list[tuple[int, float, float]]:
    """Return the length, log probability and score of the finished nodes, ranked by Python."""
    ends = [(node["position"] + 1, node["logProb"]) for node in tree if node["state"] == "finished"]
    scored = [(length, total, total / length_penalty(length, alpha)) for length, total in ends]
    return sorted(scored, key=lambda end: end[2], reverse=True)


def listed(page: Any) -> list[tuple[int, float, float]]:
    rows = [row.locator("td").all_inner_texts()[2:] for row in page.locator(".gf-ranking tbody tr").all()]
    return [(int(length), number(total), number(score)) for length, total, score in rows]


def slide(page: Any, value: float) -> None:
    page.evaluate(
        """(value) => {
          const slider = document.querySelector(".gf-beam input[type=range]");
          slider.value = value;
          slider.dispatchEvent(new Event("input"));
        }""",
        value,
    )


def settled(page: Any, action: str) -> None:
    """Run an action that makes the page search again, and wait for the result."""
    page.evaluate(f"() => new Promise((done) => {{ glassformer.app.on(['result'], () => done(null)); {action} }})")


def choose(page: Any, label: str, value: str) -> None:
    """Choose an entry of a drop-down that makes the page search again."""
    settled(
        page,
        f"""const one = document.querySelector('.gf-beam [aria-label="{label}"]');
      one.value = "{value}"; one.dispatchEvent(new Event("change"));""",
    )


def test_the_terms_of_every_node_sum_to_its_log_probability(beam):
    tree = beam.evaluate(SEARCH)["tree"]
    said = beam.evaluate(SAID)
    assert len(said) > 20
    for node in said[1:]:
        terms = [number(term) for term in node["terms"]]
        assert len(terms) == tree[node["id"]]["position"] + 1
        assert sum(terms) == pytest.approx(number(node["total"]), abs=5e-5 * (len(terms) + 1))
        assert sum(one["tokenLogProb"] for one in path(tree, node["id"])) == pytest.approx(tree[node["id"]]["logProb"])
        assert number(node["total"]) == pytest.approx(tree[node["id"]]["logProb"], abs=5e-5)


def test_the_best_path_is_the_translation_with_its_score(beam):
    best, tree = beam.evaluate(SEARCH)["best"], beam.evaluate(SEARCH)["tree"]
    [end] = [node for node in beam.evaluate(SAID) if "gf-best" in node["kind"] and "gf-finished" in node["kind"]]
    assert [node["token"] for node in path(tree, end["id"])] == best["ids"]
    assert number(end["total"]) == pytest.approx(best["logProb"], abs=5e-5)
    assert number(end["score"]) == pytest.approx(best["score"], abs=5e-5)
    assert end["text"].startswith(best["text"])
    assert beam.locator(".gf-best").count() == len(best["ids"])


def test_the_state_of_a_node_is_written_as_well_as_coloured(beam):
    tree = beam.evaluate(SEARCH)["tree"]
    borders = {"kept": "solid", "pruned": "dashed", "finished": "double"}
    for node in beam.evaluate(SAID):
        state = tree[node["id"]]["state"]
        assert state in node["name"].split(", ")
        style = f"getComputedStyle(document.querySelector('[data-node=\"{node['id']}\"]')).borderTopStyle"
        assert beam.evaluate(style) == borders[state]


def test_the_slider_ranks_finished_outputs_as_python_does(beam):
    tree = beam.evaluate(SEARCH)["tree"]
    for alpha in (0, 0.3, 0.6, 1.35, 2):
        slide(beam, alpha)
        expected, got = ranked(tree, alpha), listed(beam)
        assert [length for length, *_ in got] == [length for length, *_ in expected]
        for row, wanted in zip(got, expected, strict=True):
            assert row == pytest.approx(wanted, abs=5e-4)
        assert beam.locator(".gf-beam output").inner_text() == f"{alpha:.2f}"


def test_the_length_penalty_changes_the_winner(beam):
    winners = set()
    for alpha in (0, 2):
        slide(beam, alpha)
        winners.add(listed(beam)[0][0])
        assert beam.locator(".gf-ranking button").first.inner_text() == beam.locator(".gf-path b").first.inner_text()
    assert len(winners) == 2


def test_the_ranking_begins_as_the_search_returned_it(beam):
    hypotheses = beam.evaluate(SEARCH)["hypotheses"]
    texts = beam.locator(".gf-ranking button").all_inner_texts()
    assert texts[: len(hypotheses)] == [hypothesis["text"] for hypothesis in hypotheses]


def test_a_button_repeats_the_search_with_the_new_alpha(beam):
    again = beam.get_by_role("button", name="Search again")
    assert again.is_disabled()
    slide(beam, 2)
    settled(beam, "document.querySelector('.gf-range + button').click();")
    best = beam.evaluate(SEARCH)["best"]
    assert beam.evaluate("glassformer.app.state.search.lengthPenalty") == 2
    assert best["score"] == pytest.approx(best["logProb"] / length_penalty(len(best["ids"]), 2))
    assert listed(beam)[0][2] == pytest.approx(best["score"], abs=5e-4)


def test_a_beam_of_one_is_greedy_search(beam):
    choose(beam, "Beam size", "1")
    assert beam.evaluate("glassformer.app.state.search.beamSize") == 1
    assert "greedy" in beam.locator(".gf-beam .gf-note").first.inner_text()
    tree, best = beam.evaluate(SEARCH)["tree"], beam.evaluate(SEARCH)["best"]
    parents = {node["parent"] for node in tree} - {None, 0}
    assert [tree[id]["token"] for id in sorted(parents)] == best["ids"][:-1]


def test_the_chosen_number_of_pruned_candidates_is_shown_at_each_step(beam):
    tree = beam.evaluate(SEARCH)["tree"]
    for most, option in ((0, "0"), (2, "2"), (None, "Infinity")):
        beam.get_by_label("Show pruned candidates").select_option(option)
        shown = [tree[node["id"]] for node in beam.evaluate(SAID)]
        for position in {node["position"] for node in tree}:
            pruned = [node["id"] for node in tree if node["position"] == position and node["state"] == "pruned"]
            assert [one["id"] for one in shown if one["id"] in pruned] == pruned[:most]
        assert {node["id"] for node in tree if node["state"] != "pruned"} <= {node["id"] for node in shown}


def test_arrow_keys_lead_to_parent_child_and_sibling(beam):
    tree = beam.evaluate(SEARCH)["tree"]
    assert beam.locator(".gf-node[tabindex='0']").count() == 1
    beam.locator(".gf-node[tabindex='0']").focus()

    def here():
        return tree[int(beam.evaluate("document.activeElement.dataset.node"))]

    beam.keyboard.press("Home")
    assert here()["parent"] is None
    beam.keyboard.press("ArrowDown")
    assert here()["parent"] == 0
    first = here()
    beam.keyboard.press("ArrowRight")
    assert (here()["position"], here()["id"]) == (first["position"], first["id"] + 1)
    beam.keyboard.press("ArrowUp")
    assert here()["id"] == 0
    assert beam.locator(".gf-node[tabindex='0']").count() == 1


def test_the_tree_can_be_enlarged_and_restored(beam):
    before = beam.locator(".gf-node").count()
    beam.locator(".gf-larger").click()
    assert beam.get_by_role("dialog").get_by_role("treeitem").count() == before
    beam.locator(".gf-node[tabindex='0']").focus()
    beam.keyboard.press("Home")
    beam.keyboard.press("ArrowRight")
    assert beam.evaluate("document.activeElement.getAttribute('aria-level')") == "2"
    beam.keyboard.press("Escape")
    beam.locator(".gf-zoom").get_by_role("treeitem").first.wait_for()
    assert beam.locator(".gf-zoom").get_by_role("treeitem").count() == before
    assert beam.get_by_role("dialog").count() == 0


def test_a_long_search_is_shortened_with_a_note(make_translator, explore):
    translator = make_translator()
    config = translator.bundle.model_config
    translator.model.output.weight.data[config.eos_id] *= -1
    page = explore(translator, SENTENCE)
    open_panel(page, "beam")
    choose(page, "Beam size", "8")
    assert len(page.evaluate(SEARCH)["tree"]) > 400
    assert page.locator(".gf-node").count() == 250
    assert page.locator(".gf-beam *").count() < 500
    assert re.search(r"250 candidates are drawn, \d+ more are left out", page.locator(".gf-beam").inner_text())
