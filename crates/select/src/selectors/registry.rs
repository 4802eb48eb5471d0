//! Creation of selectors by name.

use super::error::{OptionsError, at_least, confidence};
use super::{
    ArmElimination, ArmEliminationConfig, Bayesian, BayesianConfig, BruteForce, EpsilonLucb,
    EpsilonLucbConfig, HillClimbing, HillClimbingConfig, Hints, LmProposal, MatrixUcb,
    MatrixUcbConfig, Proposal, RandomSearch, RandomSearchConfig, ThresholdSe, ThresholdSeConfig,
};
use crate::auto::{Auto, AutoOptions};
use crate::cheapest_within::CheapestWithin;
use crate::objective::Objective;
use crate::selector::Selector;
use crate::space::Space;
use crate::strict::{Strict, StrictOptions};

/// Names of the selectors; the first is the default.
pub const SELECTOR_NAMES: &[&str] = &[
    "auto",
    "strict",
    "brute_force",
    "random_search",
    "hill_climbing",
    "arm_elimination",
    "threshold_se",
    "epsilon_lucb",
    "bayesian",
    "matrix_ucb",
    "lm_proposal",
];

/// Options of all selectors. An unset option takes the default of its selector; setting an option that
/// the selector does not have is an error.
///
/// ```
/// use bakeoff_select::SelectorOptions;
///
/// let mut options = SelectorOptions::default();
/// options.seed = 7;
/// options.confidence = Some(0.99);
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct SelectorOptions {
    /// Seed of all randomness.
    pub seed: u64,
    /// Quantity to maximise; the same as that of the search.
    pub objective: Objective,
    /// Whether a budget may end the search. Selectors that evaluate everything then evaluate all combinations on a few
    /// datapoints at a time.
    pub has_budget: bool,
    /// Choose the cheapest combination within this many points of the best. All selectors support it.
    pub within: Option<f64>,
    /// Confidence required to stop.
    pub confidence: Option<f64>,
    /// Share of the combinations, or of the cells, to evaluate.
    pub fraction: Option<f64>,
    /// Mean that is good enough.
    pub threshold: Option<f64>,
    /// Difference that does not matter.
    pub epsilon: Option<f64>,
    /// Half width of the bounds in standard errors.
    pub width: Option<f64>,
    /// Datapoints of the first round, for each combination.
    pub first: Option<usize>,
    /// Growth factor of the rounds.
    pub growth: Option<f64>,
    /// Exploration constant `a` of the bound mean + √(a/n).
    pub curiosity: Option<f64>,
    /// Combinations, or datapoints of one combination, evaluated between two decisions.
    pub batch: Option<usize>,
    /// Rounds of neighbours for each start.
    pub iterations: Option<usize>,
    /// Number of starts.
    pub restarts: Option<usize>,
    /// Rounds without improvement that end a start.
    pub patience: Option<usize>,
    /// Prior knowledge about the candidates.
    pub hints: Option<Hints>,
    /// Proposals of a model; [`LmProposal::request`] obtains them.
    pub proposals: Option<Vec<Proposal>>,
}

impl SelectorOptions {
    /// Names of the options that are set.
    fn set(&self) -> impl Iterator<Item = &'static str> {
        let set = [
            ("confidence", self.confidence.is_some()),
            ("fraction", self.fraction.is_some()),
            ("threshold", self.threshold.is_some()),
            ("epsilon", self.epsilon.is_some()),
            ("width", self.width.is_some()),
            ("first", self.first.is_some()),
            ("growth", self.growth.is_some()),
            ("curiosity", self.curiosity.is_some()),
            ("batch", self.batch.is_some()),
            ("iterations", self.iterations.is_some()),
            ("restarts", self.restarts.is_some()),
            ("patience", self.patience.is_some()),
            ("hints", self.hints.is_some()),
            ("proposals", self.proposals.is_some()),
        ];
        set.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name)
    }
}

impl SelectorOptions {
    /// Removes the options that a selector does not have.
    pub fn only_of(mut self, selector: &str) -> SelectorOptions {
        let known = options_of(selector).unwrap_or_default();
        let has = |option: &str| known.contains(&option);
        self.confidence = self.confidence.filter(|_| has("confidence"));
        self.fraction = self.fraction.filter(|_| has("fraction"));
        self.threshold = self.threshold.filter(|_| has("threshold"));
        self.epsilon = self.epsilon.filter(|_| has("epsilon"));
        self.width = self.width.filter(|_| has("width"));
        self.first = self.first.filter(|_| has("first"));
        self.growth = self.growth.filter(|_| has("growth"));
        self.curiosity = self.curiosity.filter(|_| has("curiosity"));
        self.batch = self.batch.filter(|_| has("batch"));
        self.iterations = self.iterations.filter(|_| has("iterations"));
        self.restarts = self.restarts.filter(|_| has("restarts"));
        self.patience = self.patience.filter(|_| has("patience"));
        self.hints = self.hints.filter(|_| has("hints"));
        self.proposals = self.proposals.filter(|_| has("proposals"));
        self
    }
}

/// Names of the options of a selector; `None` for an unknown selector.
fn options_of(name: &str) -> Option<&'static [&'static str]> {
    Some(match name {
        "auto" => &["confidence", "epsilon"],
        "strict" => &["confidence"],
        "brute_force" => &[],
        "random_search" => &["fraction"],
        "hill_climbing" => &["iterations", "restarts", "patience", "batch", "hints"],
        "arm_elimination" => &["first", "growth", "width"],
        "threshold_se" => &["threshold", "first", "width"],
        "epsilon_lucb" => &["epsilon", "first", "width"],
        "bayesian" => &["fraction", "batch"],
        "matrix_ucb" => &["curiosity", "fraction", "batch"],
        "lm_proposal" => &["proposals"],
        _ => return None,
    })
}

/// Creates a selector by name.
///
/// # Errors
///
/// The name is unknown, or an option is invalid for the selector.
pub fn build_selector(
    name: &str,
    space: &Space,
    options: &SelectorOptions,
) -> Result<Box<dyn Selector>, OptionsError> {
    let unknown = || OptionsError::Unknown { name: name.to_owned() };
    let known = options_of(name).ok_or_else(unknown)?;
    if let Some(option) = options.set().find(|option| !known.contains(option)) {
        return Err(OptionsError::Unused { selector: name.to_owned(), option });
    }
    let Some(within) = options.within else { return build_unconstrained(name, space, options) };
    at_least("within", within, 0.0)?;
    // The selector gets one half of the error probability, the comparison by cost the other.
    let alpha = (1.0 - options.confidence.unwrap_or(DEFAULT_CONFIDENCE)) / 2.0;
    let mut options = options.clone();
    if known.contains(&"confidence") {
        options.confidence = Some(1.0 - alpha);
    }
    let best = build_unconstrained(name, space, &options)?;
    Ok(Box::new(CheapestWithin::new(best, space, (within, alpha), options.seed)))
}

/// Creates a selector that ignores `within`.
fn build_unconstrained(
    name: &str,
    space: &Space,
    options: &SelectorOptions,
) -> Result<Box<dyn Selector>, OptionsError> {
    let seed = options.seed;
    let confidence = confidence(options.confidence.unwrap_or(DEFAULT_CONFIDENCE))?;
    Ok(match name {
        "auto" => {
            let mut config = AutoOptions { confidence, seed, ..AutoOptions::default() };
            set(&mut config.epsilon, options.epsilon);
            at_least("epsilon", config.epsilon, 0.0)?;
            Box::new(Auto::new(space, config))
        }
        "strict" => {
            let Objective { cost_weight, latency_weight, .. } = options.objective;
            let range = (-cost_weight - latency_weight, 1.0);
            Box::new(Strict::new(
                space,
                StrictOptions { confidence, range, seed, ..StrictOptions::default() },
            ))
        }
        "brute_force" => Box::new(BruteForce::new(space, seed).with_budget(options.has_budget)),
        "random_search" => {
            let mut config = RandomSearchConfig::default();
            set(&mut config.fraction, options.fraction);
            Box::new(RandomSearch::new(space, &config, seed)?.with_budget(options.has_budget))
        }
        "hill_climbing" => {
            let hints = options.hints.clone();
            let mut config = HillClimbingConfig { hints, ..HillClimbingConfig::default() };
            set(&mut config.iterations, options.iterations);
            set(&mut config.restarts, options.restarts);
            set(&mut config.patience, options.patience);
            set(&mut config.batch, options.batch);
            Box::new(HillClimbing::new(space, config, seed)?)
        }
        "arm_elimination" => {
            let first = options.first;
            let mut config = ArmEliminationConfig { first, ..ArmEliminationConfig::default() };
            set(&mut config.growth, options.growth);
            set(&mut config.width, options.width);
            Box::new(ArmElimination::new(space, &config, seed)?)
        }
        "threshold_se" => {
            let first = options.first;
            let mut config = ThresholdSeConfig { first, ..ThresholdSeConfig::default() };
            set(&mut config.threshold, options.threshold);
            set(&mut config.width, options.width);
            Box::new(ThresholdSe::new(space, config, seed)?)
        }
        "epsilon_lucb" => {
            let mut config = EpsilonLucbConfig::default();
            set(&mut config.epsilon, options.epsilon);
            set(&mut config.first, options.first);
            set(&mut config.width, options.width);
            Box::new(EpsilonLucb::new(space, config, seed)?)
        }
        "bayesian" => {
            let mut config = BayesianConfig::default();
            set(&mut config.fraction, options.fraction);
            set(&mut config.batch, options.batch);
            Box::new(Bayesian::new(space, &config, seed)?)
        }
        "matrix_ucb" => {
            let mut config = MatrixUcbConfig::default();
            set(&mut config.curiosity, options.curiosity);
            set(&mut config.fraction, options.fraction);
            config.batch = options.batch;
            Box::new(MatrixUcb::new(space, config, seed)?)
        }
        "lm_proposal" => {
            let proposals = options.proposals.as_deref().unwrap_or_default();
            Box::new(LmProposal::new(space, proposals, seed)?)
        }
        _ => return Err(OptionsError::Unknown { name: name.to_owned() }),
    })
}

/// Default confidence of the selectors that have one.
const DEFAULT_CONFIDENCE: f64 = 0.95;

fn set<T>(field: &mut T, option: Option<T>) {
    if let Some(value) = option {
        *field = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{OutOfOrder, dollars, grid};
    use crate::{Cell, SearchOptions, SearchOutcome, select_best};

    fn proposals(space: &Space) -> Vec<Proposal> {
        let proposal = |combo: usize| {
            let roles = space.roles().iter().enumerate();
            let candidate = |(role, of): (usize, &crate::Role)| {
                (of.name.clone(), space.candidate(combo, role).to_owned())
            };
            roles.map(candidate).collect()
        };
        [1, 7, 11].map(proposal).to_vec()
    }

    fn options(name: &str, space: &Space, seed: u64) -> SelectorOptions {
        let proposals = (name == "lm_proposal").then(|| proposals(space));
        SelectorOptions { seed, proposals, ..SelectorOptions::default() }
    }

    /// Pseudo-random scores, better for later combinations, with occasional errors. Each has a twin.
    fn score(cell: Cell) -> Option<f64> {
        let cell = Cell { combo: cell.combo & !4, ..cell };
        let mixed = (cell.combo as u64 * 1_000_003 + cell.datapoint as u64)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let (percent, draw) = ((mixed >> 40) % 100, (mixed >> 20) % 40);
        (draw != 0).then_some(f64::from(percent < 20 + 4 * cell.combo as u64))
    }

    async fn run(name: &str, seed: u64, parallel: bool, max_concurrent: usize) -> SearchOutcome {
        let space = grid(&[4, 4], 40);
        let mut selector = build_selector(name, &space, &options(name, &space, seed)).unwrap();
        let run = SearchOptions { parallel, max_concurrent, ..SearchOptions::default() };
        let mut cells = OutOfOrder::new(score);
        // Equal for several combinations, so that there are ties in score and cost.
        cells.cost = |cell| dollars(0.1 * (cell.combo % 4 * 3 + cell.datapoint * 7 % 11) as f64);
        let mut outcome = select_best(&space, selector.as_mut(), &cells, run).await.unwrap();
        // Latencies are measured. Neither the choice nor the ranking depends on them, but the front does.
        outcome.front.clear();
        outcome.ranking.iter_mut().for_each(|ranked| ranked.latency = 0.0);
        outcome
    }

    #[tokio::test]
    async fn concurrency_does_not_change_the_outcome() {
        for name in SELECTOR_NAMES {
            for seed in 0..5 {
                let sequential = run(name, seed, false, 1).await;
                assert_eq!(sequential.selector, *name);
                for max_concurrent in [3, 20, 1000] {
                    let parallel = run(name, seed, true, max_concurrent).await;
                    assert_eq!(parallel, sequential, "{name}, seed {seed}");
                }
            }
        }
    }

    #[test]
    fn search_with_errors_ends() {
        let space = grid(&[3, 3, 2], 12);
        for name in SELECTOR_NAMES {
            for missing in [1, 2, 5] {
                let mut selector = build_selector(name, &space, &options(name, &space, 1)).unwrap();
                // Combinations that always error, datapoints on which all error, and both.
                let observe = |cell: Cell| {
                    crate::testing::observed(
                        (!cell.combo.is_multiple_of(missing)
                            && !cell.datapoint.is_multiple_of(missing))
                        .then_some(0.5),
                    )
                };
                let end = crate::replay(
                    &space,
                    selector.as_mut(),
                    observe,
                    crate::Objective::default(),
                    crate::SearchBudget::default(),
                );
                match end {
                    Ok(selection) => assert!(!selection.winner.is_multiple_of(missing), "{name}"),
                    Err(error) => {
                        assert!(matches!(error, crate::SelectError::NothingObserved(_)), "{error}");
                    }
                }
            }
        }
    }

    #[test]
    fn empty_space_has_no_winner() {
        let roles = grid(&[2], 3).roles().to_vec();
        let space = Space::from_combos(roles, vec![], 3).unwrap();
        for name in SELECTOR_NAMES.iter().filter(|name| **name != "lm_proposal") {
            let mut selector = build_selector(name, &space, &SelectorOptions::default()).unwrap();
            let end = selector.next(&crate::Evidence::new(&space, crate::Objective::default()));
            assert!(matches!(end, crate::SelectorStep::NoWinner(_)), "{name}");
        }
    }

    #[test]
    fn invalid_names_and_options_are_rejected() {
        let space = grid(&[2, 2], 4);
        let message = |name, options: SelectorOptions| match build_selector(name, &space, &options)
        {
            Ok(_) => "fine".to_owned(),
            Err(error) => error.to_string(),
        };
        let none = SelectorOptions::default;
        assert_eq!(
            message("best", none()),
            "unknown selector `best`; available: auto, strict, brute_force, random_search, \
             hill_climbing, arm_elimination, threshold_se, epsilon_lucb, bayesian, matrix_ucb, lm_proposal"
        );
        let fraction = SelectorOptions { fraction: Some(2.0), ..none() };
        assert_eq!(
            message("bayesian", fraction.clone()),
            "fraction is 2, must be above 0 and at most 1"
        );
        assert_eq!(
            message("arm_elimination", fraction),
            "selector `arm_elimination` has no option `fraction`"
        );
        let threshold = SelectorOptions { threshold: Some(75.0), ..none() };
        assert_eq!(message("threshold_se", threshold), "threshold is 75, must be between 0 and 1");
        assert_eq!(message("lm_proposal", none()), "no usable proposals");
        let width = SelectorOptions { width: Some(-1.0), ..none() };
        assert_eq!(message("epsilon_lucb", width), "width is -1, must be at least 0");
        let certain = SelectorOptions { confidence: Some(1.0), ..none() };
        assert_eq!(message("auto", certain), "confidence is 1, must be at least 0.5 and below 1");
        let within = SelectorOptions { within: Some(-0.1), ..none() };
        assert_eq!(message("bayesian", within), "within is -0.1, must be at least 0");
        let all = SelectorOptions {
            confidence: Some(0.9),
            fraction: Some(0.5),
            threshold: Some(0.5),
            epsilon: Some(0.1),
            width: Some(1.0),
            first: Some(1),
            growth: Some(2.0),
            curiosity: Some(1.0),
            batch: Some(1),
            iterations: Some(2),
            restarts: Some(2),
            patience: Some(2),
            ..none()
        };
        for name in SELECTOR_NAMES.iter().filter(|name| **name != "lm_proposal") {
            assert_ne!(message(name, all.clone()), "fine", "{name}");
            assert_eq!(message(name, all.clone().only_of(name)), "fine", "{name}");
        }
        assert!(SELECTOR_NAMES.iter().all(|name| options_of(name).is_some()));
    }
}
