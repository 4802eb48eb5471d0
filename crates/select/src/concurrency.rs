//! Division of the concurrency limit between combinations and datapoints.

/// Two-level concurrency limit: combinations in parallel, and datapoints of each in parallel.
///
/// Datapoints take precedence, because one finished combination is worth more than several that are
/// half done. A round with a single datapoint per combination gives all slots to combinations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Concurrency {
    /// Maximum number of concurrent combinations.
    pub combos: usize,
    /// Maximum number of concurrent datapoints of a combination.
    pub datapoints: usize,
}

impl Concurrency {
    /// One cell at a time.
    pub const SEQUENTIAL: Concurrency = Concurrency { combos: 1, datapoints: 1 };

    /// Divides `slots` for a round with at most `batch` datapoints per combination.
    ///
    /// The product never exceeds `slots`, and is at least 1.
    pub fn split(slots: usize, batch: usize) -> Concurrency {
        let slots = slots.max(1);
        let datapoints = slots.min(batch.max(1));
        Concurrency { combos: slots / datapoints, datapoints }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn datapoints_take_precedence() {
        let table = [(20, 5, 4, 5), (20, 100, 1, 20), (20, 1, 20, 1), (10, 10, 1, 10)];
        for (slots, batch, combos, datapoints) in table {
            assert_eq!(Concurrency::split(slots, batch), Concurrency { combos, datapoints });
        }
    }

    #[test]
    fn at_least_one_slot_remains() {
        assert_eq!(Concurrency::split(0, 5), Concurrency::SEQUENTIAL);
        assert_eq!(Concurrency::split(3, 0), Concurrency { combos: 3, datapoints: 1 });
    }

    proptest! {
        #[test]
        fn split_never_exceeds_the_limit(slots in 1_usize..5000, batch in 0_usize..5000) {
            let split = Concurrency::split(slots, batch);
            prop_assert!(split.combos >= 1 && split.datapoints >= 1);
            prop_assert!(split.combos * split.datapoints <= slots);
            prop_assert!(split.datapoints <= batch.max(1));
        }
    }
}
