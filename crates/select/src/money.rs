//! Conversions of [`NanoDollars`]: to the `f64` of numerical models, to means, and to JSON in dollars.

use bakeoff_core::NanoDollars;

/// Converts an amount to dollars for numerical models, which compare costs and divide by them.
///
/// Sums and budgets stay in whole nano-dollars.
pub(crate) fn model_dollars(amount: NanoDollars) -> f64 {
    amount.as_dollars()
}

/// Returns the mean of `count` amounts with this sum, rounded to the nearest nano-dollar.
pub(crate) fn mean(sum: NanoDollars, count: usize) -> NanoDollars {
    let count = count.max(1) as i128;
    let rounded = (i128::from(sum.0) + count / 2).div_euclid(count);
    // A mean is no larger than the largest amount.
    NanoDollars(i64::try_from(rounded).unwrap_or(i64::MAX))
}

/// Serde functions for an amount that is written as a number of dollars.
pub(crate) mod dollars {
    use super::NanoDollars;
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub(crate) fn serialize<S: Serializer>(
        amount: &NanoDollars,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(amount.as_dollars())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<NanoDollars, D::Error> {
        from_dollars(f64::deserialize(deserializer)?)
    }

    pub(super) fn from_dollars<E: de::Error>(dollars: f64) -> Result<NanoDollars, E> {
        NanoDollars::from_dollars(dollars)
            .ok_or_else(|| E::custom(format!("`{dollars}` is not an amount in dollars")))
    }
}

/// The same for an optional amount.
pub(crate) mod optional_dollars {
    use super::NanoDollars;
    use super::dollars::from_dollars;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        amount: &Option<NanoDollars>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        amount.map(NanoDollars::as_dollars).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<NanoDollars>, D::Error> {
        Option::<f64>::deserialize(deserializer)?.map(from_dollars).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_rounds_to_the_nearest_nano_dollar() {
        assert_eq!(mean(NanoDollars(10), 4), NanoDollars(3));
        assert_eq!(mean(NanoDollars(9), 4), NanoDollars(2));
        assert_eq!(mean(NanoDollars(7), 0), NanoDollars(7));
        assert_eq!(mean(NanoDollars(i64::MAX), 1), NanoDollars(i64::MAX));
    }
}
