"""Problem and DeviceProfile: what conditions and kernels are asked with."""

import copy
import json
import pathlib
import pickle
import tempfile
import unittest

import xpuruntime as xrt

CONV = "conv2d(f32[1,64,56,56], f32[32,64,3,3]; padding=1,1) @cpu:0"


class ProblemTest(unittest.TestCase):
    def test_its_parts_are_those_of_its_text(self) -> None:
        problem = xrt.Problem(CONV)
        self.assertEqual((problem.op, problem.direction, str(problem.device)), ("conv2d", "forward", "cpu:0"))
        self.assertEqual([spec.shape for spec in problem.inputs], [(1, 64, 56, 56), (32, 64, 3, 3)])
        self.assertEqual([spec.shape for spec in problem.outputs], [(1, 32, 56, 56)])
        self.assertEqual(problem.attributes, {"stride": (1, 1), "padding": (1, 1), "dilation": (1, 1), "groups": 1})
        self.assertEqual(problem.dtype, "f32")
        self.assertEqual(str(problem), CONV)

    def test_strides_are_in_elements_and_tell_a_transposed_input(self) -> None:
        straight, transposed = xrt.Problem("matmul(f32[4,8], bf16[8,2]{1,8})").inputs
        self.assertEqual((straight.strides, straight.contiguous), ((8, 1), True))
        self.assertEqual((transposed.strides, transposed.contiguous, transposed.dtype), ((1, 8), False, "bf16"))

    def test_attributes_have_the_type_of_their_kind(self) -> None:
        values = xrt.Problem("matmul(f32[4,8], f32[8,2])").attributes
        self.assertIs(values["transpose_a"], False)
        layer_norm = xrt.Problem("layer_norm(f32[4,8], f32[8], f32[8])").attributes
        self.assertIsInstance(layer_norm["eps"], float)
        self.assertEqual(xrt.Problem("cast(f32[4]; dtype=bf16)").attributes["dtype"], "bf16")

    def test_backward_and_another_device_are_part_of_it(self) -> None:
        problem = xrt.Problem("matmul:backward(f32[4,8], f32[8,2], f32[4,2])", device="cuda:1")
        self.assertEqual((problem.direction, str(problem.device)), ("backward", "cuda:1"))
        self.assertEqual([spec.shape for spec in problem.outputs], [(4, 8), (8, 2)])

    def test_equal_texts_are_equal_problems_and_one_key(self) -> None:
        first, second = xrt.Problem(CONV), xrt.Problem(CONV.replace(" @cpu:0", ""))
        self.assertEqual(first, second)
        self.assertEqual(len({first: 1, second: 2}), 1)
        self.assertNotEqual(first, xrt.Problem(CONV.replace("padding=1,1", "padding=2,2")))
        self.assertNotEqual(first, CONV)

    def test_it_is_copied_and_pickled_whole(self) -> None:
        for text in (CONV, "matmul:backward(f32[4,8]{1,4}, f32[8,2], f32[4,2]) @cuda:1"):
            problem = xrt.Problem(text)
            self.assertEqual(pickle.loads(pickle.dumps(problem)), problem)
            self.assertEqual(copy.deepcopy(problem), problem)

    def test_wrong_texts_and_types_say_what_to_pass(self) -> None:
        with self.assertRaisesRegex(xrt.UnknownNameError, "did you mean matmul"):
            xrt.Problem("matmull(f32[2,2], f32[2,2])")
        for wrong in (None, 3, [CONV], b"add(f32[2], f32[2])"):
            with self.assertRaisesRegex(xrt.ArgumentTypeError, "pass a"):
                xrt.Problem(wrong)
        with self.assertRaises(xrt.ArgumentTypeError):
            xrt.Problem(CONV, device=3)


class DeviceProfileTest(unittest.TestCase):
    def setUp(self) -> None:
        self.path = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / "profile.json"

    def test_fields_are_given_by_name_and_the_others_keep_theirs(self) -> None:
        profile = xrt.DeviceProfile(type="opencl", vendor="apple", name="M2", compute_units=10, fp16=True,
                                    extensions=["cl_khr_fp16"])
        self.assertEqual((profile.type, profile.vendor, profile.compute_units), ("opencl", "apple", 10))
        self.assertTrue(profile.fp16)
        self.assertFalse(profile.bf16)
        self.assertTrue(profile.has_extension("cl_khr_fp16"))
        self.assertFalse(profile.has_cpu_feature("avx2"))

    def test_what_is_saved_is_loaded_again(self) -> None:
        profile = xrt.DeviceProfile(vendor="arm", cpu_features=["neon"])
        profile.save(self.path)
        self.assertEqual(xrt.DeviceProfile.load(str(self.path)), profile)
        self.assertEqual(json.loads(self.path.read_text())["cpu_features"], ["neon"])
        self.assertEqual(xrt.DeviceProfile.from_json(profile.to_json()), profile)
        self.assertNotEqual(profile, xrt.DeviceProfile())
        self.assertEqual(len({profile, xrt.DeviceProfile.load(self.path)}), 1)

    def test_copies_and_pickles_have_every_field(self) -> None:
        for profile in (xrt.DeviceProfile(vendor="arm", cpu_features=["neon"]), xrt.device_profile()):
            for made in (copy.copy(profile), copy.deepcopy(profile), pickle.loads(pickle.dumps(profile))):
                self.assertEqual(made, profile)

    def test_unknown_fields_wrong_values_and_missing_files_are_errors(self) -> None:
        with self.assertRaisesRegex(xrt.XpuRuntimeError, r"^\[DeviceProfile\] unknown field 'vendr'; use one of: .*vendor,"):
            xrt.DeviceProfile(vendr="arm")
        with self.assertRaisesRegex(xrt.XpuRuntimeError, r"^\[DeviceProfile\] field 'vendor' is 'ARM'; write it in lower"):
            xrt.DeviceProfile(vendor="ARM")
        with self.assertRaises(xrt.XpuRuntimeError):
            xrt.DeviceProfile(compute_units="many")
        with self.assertRaises(xrt.ArgumentTypeError):
            xrt.DeviceProfile(vendor=object())
        with self.assertRaises(xrt.FileError):
            xrt.DeviceProfile.load(self.path)
        with self.assertRaises(xrt.ArgumentTypeError):
            xrt.DeviceProfile.load(3)
        with self.assertRaises(xrt.ArgumentTypeError):
            xrt.DeviceProfile().has_cpu_feature(None)


if __name__ == "__main__":
    unittest.main()
