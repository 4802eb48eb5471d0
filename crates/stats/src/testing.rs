//! How tests compare with printed reference values.

/// Equal to six decimals.
#[track_caller]
pub(crate) fn near(actual: f64, expected: f64) {
    assert!((actual - expected).abs() <= 0.51e-6, "{actual} is not {expected}");
}

/// Equal to six significant digits.
#[track_caller]
pub(crate) fn six_digits(actual: f64, expected: f64) {
    let unit = 10_f64.powf(expected.abs().log10().floor() - 5.0);
    assert!((actual - expected).abs() <= 0.51 * unit, "{actual} is not {expected}");
}
