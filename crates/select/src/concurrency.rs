//! How many calls run at once, and of whom.

/// Slots shared out on two levels: combinations at once, and datapoints of each at once.
///
/// Datapoints come first, because one combination that is finished says more than several that are
/// half done. A round of single datapoints gives all slots to combinations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Concurrency {
    /// Combinations that run at once.
    pub combos: usize,
    /// Datapoints of one combination that run at once.
    pub datapoints: usize,
}

impl Concurrency {
    /// One cell after the other.
    pub const SEQUENTIAL: Concurrency = Concurrency { combos: 1, datapoints: 1 };

    /// Shares out `most` slots when a combination has at most `batch` datapoints to run.
    ///
    /// The product never exceeds `most`, except that there is always one slot.
    pub fn split(most: usize, batch: usize) -> Concurrency {
        let most = most.max(1);
        let datapoints = most.min(batch.max(1));
        Concurrency { combos: most / datapoints, datapoints }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn datapoints_come_first() {
        let table = [(20, 5, 4, 5), (20, 100, 1, 20), (20, 1, 20, 1), (10, 10, 1, 10)];
        for (most, batch, combos, datapoints) in table {
            assert_eq!(Concurrency::split(most, batch), Concurrency { combos, datapoints });
        }
    }

    #[test]
    fn there_is_always_a_slot() {
        assert_eq!(Concurrency::split(0, 5), Concurrency::SEQUENTIAL);
        assert_eq!(Concurrency::split(3, 0), Concurrency { combos: 3, datapoints: 1 });
    }

    proptest! {
        #[test]
        fn never_more_than_allowed(most in 1_usize..5000, batch in 0_usize..5000) {
            let split = Concurrency::split(most, batch);
            prop_assert!(split.combos >= 1 && split.datapoints >= 1);
            prop_assert!(split.combos * split.datapoints <= most);
            prop_assert!(split.datapoints <= batch.max(1));
        }
    }
}
