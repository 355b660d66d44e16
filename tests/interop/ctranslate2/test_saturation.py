"""One product tells whether sums of 8-bit products overflow in the library that CTranslate2 chooses."""

import platform

import pytest

from glassformer.interop.ctranslate2.saturation import saturates_int8
from products import products_overflow

X86 = platform.machine() in ("x86_64", "AMD64")


@pytest.mark.slow
@pytest.mark.skipif(not X86, reason="only x86 has instructions that add pairs of products in 16 bits")
@pytest.mark.parametrize("name", ["ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"])
def test_the_library_is_asked_and_not_the_processor(name):
    assert products_overflow(CT2_USE_MKL="0", **{name: "AVX2"})


def test_the_tests_use_products_that_do_not_overflow():
    """Otherwise, exports in int8 would differ from their runs by more than their tests allow."""
    assert not saturates_int8()
