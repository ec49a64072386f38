"""The page of xrt report in a headless Chromium: sorted, searched, read, used by keyboard, on paper and on a phone."""
import json
import os
import unittest
from pathlib import Path

import chromium
from report_case import EVIL, RELU, SOFTMAX, MIXED, ReportCase

MATMUL = "matmul(f32[64,64], f32[64,64]) @cpu:0"
TIMES = [(SOFTMAX, "simd", {"simd": 26.5, "reference": 57134.25}), (RELU, "reference", {"simd": 1.25, "reference": 80}),
         (MATMUL, EVIL, {EVIL: 12.5, "openblas": 20, "reference": 15000}), (MIXED, "reference", {"reference": 3})]


@unittest.skipUnless(chromium.PROGRAM, "needs Chromium")
class Page(ReportCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = chromium.Chromium()
        cls.addClassCleanup(cls.browser.close)

    def show(self, *arguments, **look):
        page = self.folder / "report.html"
        self.fine("report", *arguments, "--out", page)
        self.browser.show_as(**look)
        self.browser.open(page)
        return page

    def show_store(self, **look):
        return self.show("--store", self.store(*TIMES), **look)

    def problems(self):
        return self.each("#rows .row .opener", "e.textContent")

    def each(self, selector, value):
        """A JavaScript expression of every element `e` that fits."""
        return self.browser.run(f"[...document.querySelectorAll({json.dumps(selector)})].map(e => {value})")

    def click(self, selector):
        self.browser.run(f"document.querySelector({json.dumps(selector)}).click()")

    def text(self, selector):
        return self.browser.run(f"document.querySelector({json.dumps(selector)}).innerText")

    def sorted_as(self):
        return self.each("[aria-sort]", "[e.innerText.replace(/\\W/g, ''), e.ariaSort]")

    def tearDown(self):
        self.assertEqual(self.browser.complaints, [])

    def test_opens_with_the_answer_first_and_asks_nobody(self):
        page = self.show_store()
        self.assertEqual(self.browser.calls, [page.resolve().as_uri()])
        self.assertIn("4 decisions for 3 ops. The chosen kernel is the fastest measured in 2 of 3.", self.text("#lead"))
        self.assertIn("reference takes 80.0 µs, 64.0× what simd takes (1.25 µs)", self.text("#look"))
        self.assertEqual(self.browser.run("document.title"), f"{self.folder}/store.sqlite · kernel report")

    def test_a_choice_within_the_noise_of_a_faster_one_is_not_called_the_fastest(self):
        self.show("--store", self.store((RELU, "simd", {"simd": 100.5, "reference": 100}),
                                        (SOFTMAX, "simd", {"simd": 26.5, "reference": 57134.25})))
        self.assertIn("The chosen kernel is the fastest measured in 1 of 2, and as good as the fastest, within 2 % or the "
                      "noise, in 1 more.", self.text("#lead"))

    def test_sorts_by_any_column_both_ways(self):
        self.show_store()
        by_time = [RELU, SOFTMAX, MATMUL, MIXED]  # dearest first
        self.assertEqual((self.problems(), self.sorted_as()), (by_time, [["Time", "descending"]]))
        self.click("[data-sort=time]")
        self.assertEqual((self.problems(), self.sorted_as()), (by_time[::-1], [["Time", "ascending"]]))
        self.click("[data-sort=problem]")
        self.assertEqual((self.problems(), self.sorted_as()),
                         ([MATMUL, RELU, MIXED, SOFTMAX], [["Problem", "ascending"]]))
        self.click("[data-sort=margin]")  # the one without an alternative comes last, either way
        self.assertEqual(self.problems(), [SOFTMAX, MATMUL, RELU, MIXED])
        self.click("[data-sort=margin]")
        self.assertEqual(self.problems(), [RELU, MATMUL, SOFTMAX, MIXED])

    def test_searches_problems_kernels_and_reasons(self):
        self.show_store()
        for words, found in [("relu", [RELU]), ("OPENBLAS", [MATMUL]), ("the input's", [MIXED]),
                             ("f32[64, won", [SOFTMAX, MATMUL]),
                             ("nosuchword", [])]:
            self.browser.run("at('search').value = ''; at('search').focus()")
            self.browser.type(words)
            self.assertEqual(self.problems(), found, words)
        self.assertIn("No decision has all of these words", self.text("#nothing"))
        self.click("#clear")
        self.assertEqual((len(self.problems()), self.text("#count")), (4, "4 decisions"))

    def test_filters_by_op_and_kind(self):
        self.show_store()
        choose = "(id, value) => { at(id).value = value; at(id).dispatchEvent(new Event('input')); }"
        self.browser.run(f"({choose})('pick-op', 'softmax')")
        self.assertEqual((self.problems(), self.text("#count")), ([SOFTMAX, MIXED], "2 of 4 decisions"))
        self.browser.run(f"({choose})('pick-op', ''); ({choose})('pick-kind', 'slower')")
        self.assertEqual(self.problems(), [RELU])

    def test_reads_a_number_of_an_alternative(self):
        self.show_store()
        self.click("#rows .row:nth-child(2) .opener")
        rows = self.each(".candidates tbody tr", "[...e.cells].map(c => c.innerText)")
        self.assertEqual([(row[0], row[2], row[3], row[5]) for row in rows],
                         [("simd", "26.5 µs ± 0.50 µs", "1.00×", "64 B"),
                          ("reference", "57.1 ms ± 0.50 µs", "2156×", "64 B")])
        label = self.each("#rows .row svg", "e.getAttribute('aria-label')")[1]
        self.assertEqual(label, "simd 26.5 µs, reference 57.1 ms")

    def test_a_hostile_name_stays_a_name(self):
        self.show_store()
        self.assertIn(EVIL, self.text("#rows"))
        self.assertEqual(self.browser.run("document.scripts.length"), 2)
        self.assertNotEqual(self.browser.run("document.title"), "broken")

    def test_works_by_keyboard(self):
        self.show_store()
        self.browser.press("/", "Slash", "/")
        self.assertEqual(self.browser.run("document.activeElement.id"), "search")
        for _ in range(4):  # past op, kind and "open all" to the first heading
            self.browser.press("Tab")
        self.assertEqual(self.browser.run("document.activeElement.dataset.sort"), "problem")
        self.browser.press("Enter", text="\r")
        self.assertEqual((self.sorted_as(), self.browser.run("document.activeElement.dataset.sort")),
                         ([["Problem", "ascending"]], "problem"))
        outline = self.browser.run("getComputedStyle(document.activeElement).outlineStyle")
        self.assertEqual(outline, "solid")
        for _ in range(6):  # the other five headings, then the first row
            self.browser.press("Tab")
        self.browser.press("Enter", text="\r")
        opened = self.browser.run("[document.activeElement.ariaExpanded, document.querySelectorAll('.detail').length]")
        self.assertEqual(opened, ["true", 1])

    def test_every_control_has_a_name(self):
        self.show_store()
        named = "Boolean(e.closest('[hidden]') || e.innerText.trim() || (e.labels && e.labels.length))"
        self.assertEqual(set(self.each("button, input, select", named)), {True})

    def test_fits_a_phone_and_paper(self):
        for look in [{"width": 390, "height": 844}, {"width": 320, "height": 600},
                     {"width": 794, "height": 1100, "media": "print"}]:
            self.show_store(**look)
            self.click("#open-all")
            width, room = self.browser.run("[document.documentElement.scrollWidth, innerWidth]")
            self.assertLessEqual(width, room, look)
        self.assertEqual(self.browser.run("getComputedStyle(document.querySelector('.tools')).display"), "none")

    def test_takes_a_picture_in_light_and_dark(self):
        grounds = {}
        for scheme in ["light", "dark"]:
            self.show_store(scheme=scheme, width=800, height=600)
            picture = self.browser.screenshot()
            if os.environ.get("XRT_SCREENSHOTS"):  # a folder, for people
                Path(os.environ["XRT_SCREENSHOTS"], f"report_{scheme}.png").write_bytes(picture)
            width, height, colours = chromium.colours_of(picture)
            self.assertEqual((width, height), (800, 600))
            self.assertGreater(len(colours), 50)  # text and bars, not a blank page
            ground = self.browser.run("getComputedStyle(document.body).backgroundColor")
            grounds[scheme] = sum(map(int, ground[4:-1].split(",")))
        self.assertGreater(grounds["light"], 600)
        self.assertLess(grounds["dark"], 150)

    def test_the_theme_button_overrules_the_system(self):
        self.show_store(scheme="light")
        ground = "getComputedStyle(document.body).backgroundColor"
        light = self.browser.run(ground)
        self.click("#theme")
        self.assertEqual((self.text("#theme"), self.browser.run(ground)), ("Theme: light", light))
        self.click("#theme")
        self.assertEqual(self.text("#theme"), "Theme: dark")
        self.assertNotEqual(self.browser.run(ground), light)
        self.click("#theme")

    def test_a_lock_without_decisions_says_so(self):
        lock = self.write("empty.lock", '{"version": 1, "environments": {}, "decisions": []}')
        self.show("--lock", lock)
        self.assertEqual(self.text("#lead"), "There is no decision in it.")
        self.assertEqual(self.browser.run("document.querySelectorAll('main section:not([hidden])').length"), 0)

    def test_a_model_has_its_engines_and_nodes_also_on_a_phone(self):
        try:
            from onnx import TensorProto, helper, save
        except ImportError:
            self.skipTest("onnx is not installed")
        nodes = [helper.make_node("Exp", ["x"], ["a"], EVIL), helper.make_node("Tanh", ["a"], ["y"], "last")]
        values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 8]) for name in "xy"]
        path = self.folder / "model.onnx"
        save(helper.make_model(helper.make_graph(nodes, "small", values[:1], values[1:]),
                               opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
        self.show(path, width=390, height=844)
        if os.environ.get("XRT_SCREENSHOTS"):
            Path(os.environ["XRT_SCREENSHOTS"], "report_model.png").write_bytes(self.browser.screenshot())
        self.assertEqual(self.text("#title"), str(path))
        self.assertIn("native 0.1.0 on cpu: ", self.text("#models"))
        self.assertIn("native (runs the model)", self.each("#models .scroll:nth-of-type(1) td.name", "e.textContent"))
        cells = self.each("#models .scroll:nth-of-type(2) tbody tr", "[...e.cells].slice(0, 4).map(c => c.textContent)")
        self.assertEqual(cells, [[EVIL, "Exp", "exp(f32[4,8]) @cpu:0", "simd"], ["last", "Tanh", "tanh(f32[4,8]) @cpu:0", "simd"]])
        width, room = self.browser.run("[document.documentElement.scrollWidth, innerWidth]")
        self.assertLessEqual(width, room)

    def test_without_a_single_time_there_are_no_columns_for_times(self):
        self.show(RELU, MIXED)
        heads = self.each("#heading th", "e.innerText.replace(/\\W/g, '')")
        self.assertEqual(heads, ["Problem", "Kernel", "Workspace", "Why"])
        self.click("#open-all")
        self.assertIn("output 0 is f16, and this kernel takes the input's f32", self.text("#table"))

    def test_draws_the_first_of_very_many_rows_and_finds_the_others(self):
        problems = self.write("problems.txt", "\n".join(f"relu(f32[{i}])" for i in range(1, 402)))
        self.show("--from-log", problems)
        self.assertEqual((len(self.problems()), self.text("#count"), self.text("#more")),
                         (300, "401 decisions", "Show the other 101"))
        self.browser.run("at('search').focus()")
        self.browser.type("f32[401]")
        self.assertEqual(self.problems(), ["relu(f32[401]) @cpu:0"])
        self.browser.run("at('search').value = ''")
        self.click("#more")
        self.assertEqual(len(self.problems()), 401)

    def test_shows_what_changed(self):
        policy = self.write("policy.json", '{"preferences": {"relu": "reference"}}')
        before = self.record("before.lock", RELU, MIXED, options=("--policy", policy))
        after = self.record("after.lock", RELU, SOFTMAX)
        self.show("--lock", after, "--against", before, "--store", self.store(*TIMES))
        rows = self.each("#changes-rows tr", "[...e.cells].map(c => c.innerText.trim())")
        self.assertEqual(rows, [["changed", RELU, "reference", "simd", "80.0 µs → 1.25 µs\n64.0× faster"],
                                ["gone", MIXED, "reference", "–", ""], ["new", SOFTMAX, "–", "simd", ""]])


if __name__ == "__main__":
    unittest.main()
