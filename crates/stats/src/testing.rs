//! Comparison with printed reference values in tests.

/// Asserts equality to six decimals.
#[track_caller]
pub(crate) fn near(actual: f64, expected: f64) {
    assert!((actual - expected).abs() <= 0.51e-6, "{actual} is not {expected}");
}

/// Asserts equality to six significant digits.
#[track_caller]
pub(crate) fn six_digits(actual: f64, expected: f64) {
    let unit = 10_f64.powf(expected.abs().log10().floor() - 5.0);
    assert!((actual - expected).abs() <= 0.51 * unit, "{actual} is not {expected}");
}
