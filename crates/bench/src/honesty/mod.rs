//! Error rates of early stops, intervals and comparisons, measured where the true rates are known.

mod coverage;
mod early_stops;
mod identical_targets;
mod random_pairs;
mod simulated_runs;

pub use coverage::{CoverageRow, Outcome, coverage};
pub use early_stops::{StopRow, early_stops};
pub use identical_targets::identical_targets;
pub use random_pairs::{PairCounts, random_pairs};
