"""Says in a sentence which engine was the fastest, from `xrt bench MODEL.onnx --json` on standard input."""
import json
import sys

measured = [engine for engine in json.load(sys.stdin)["engines"] if "median_us" in engine]
fastest, *others = sorted(measured, key=lambda engine: engine["median_us"])
others = [f"{engine['engine']} took {engine['median_us'] / fastest['median_us']:.2f} times as long" for engine in others]
why = ", ".join(others) or "no other engine was measured"
print(f"\nEngine {fastest['engine']} is the fastest by median, {fastest['median_us'] / 1000:.2f} ms; {why}.")
