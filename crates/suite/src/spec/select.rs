//! Keys of `[select]`.

use super::{Field, Section, ValueType, optional, required};

const SHARE: ValueType = ValueType::Number { min: 0.0, max: 1.0 };
const WEIGHT: ValueType = ValueType::Number { min: 0.0, max: 1e6 };
const COUNT: ValueType = ValueType::Integer { min: 1, max: 1_000_000_000 };

/// Keys of `[select]`.
pub(super) const SELECT: Section =
    Section::new("Search space and method of `bakeoff select`", &FIELDS);

const FIELDS: [Field; 25] = [
    optional(
        "target",
        ValueType::Text,
        "Target whose roles are searched [default: the only target with roles]",
    ),
    required(
        "roles",
        ValueType::TextListMap,
        "Candidates of each role, such as `solver = [\"small\", \"large\"]`; other roles keep their model of [roles]",
    ),
    optional("describe", ValueType::TextMap, "Descriptions of the roles for the proposing model"),
    optional(
        "method",
        ValueType::Choice(bakeoff_select::SELECTOR_NAMES),
        "Search method [default: auto]",
    ),
    optional(
        "confidence",
        ValueType::Number { min: 0.5, max: 0.9999 },
        "For `auto` and `strict`: confidence of the choice [default: 0.95]",
    ),
    optional(
        "epsilon",
        SHARE,
        "For `auto` and `epsilon_lucb`: score difference up to which combinations count as equal [default: 0.01]",
    ),
    optional(
        "objective",
        ValueType::Choice(&["score", "pass_rate"]),
        "Quantity to maximise: mean score, or share of trials that pass [default: score]",
    ),
    optional(
        "cost_weight",
        WEIGHT,
        "Score penalty of the most expensive trial of the first round, proportional for others [default: 0]",
    ),
    optional(
        "latency_weight",
        WEIGHT,
        "Score penalty of the slowest trial of the first round, proportional for others [default: 0]",
    ),
    optional(
        "cheapest_within",
        SHARE,
        "Choose the cheapest combination whose score is at most this much below the best",
    ),
    optional(
        "max_task_usd",
        ValueType::Number { min: 0.0, max: 1e9 },
        "Choose the best combination that costs at most this many dollars per case",
    ),
    optional(
        "max_cost_usd",
        ValueType::Number { min: 0.0, max: 1e9 },
        "Budget of the search in dollars; no trial starts after it is spent",
    ),
    optional("max_cells", ValueType::Integer { min: 1, max: i64::MAX }, "Maximum number of trials"),
    optional(
        "deadline",
        ValueType::Number { min: 0.001, max: 1e9 },
        "Time budget of the search in seconds; no trial starts after it",
    ),
    optional(
        "proposer",
        ValueType::Text,
        "For `lm_proposal`: proposing model, a name under [models] or [sim], or provider/model",
    ),
    optional(
        "fraction",
        SHARE,
        "For `random_search`, `bayesian` and `matrix_ucb`: share of the combinations or trials to evaluate",
    ),
    optional("threshold", SHARE, "For `threshold_se`: sufficient mean score"),
    optional(
        "width",
        ValueType::Number { min: 0.0, max: 1e6 },
        "For `arm_elimination`, `threshold_se` and `epsilon_lucb`: distance of the bounds from the mean in standard errors [default: 1]",
    ),
    optional(
        "first",
        COUNT,
        "For `arm_elimination`, `threshold_se` and `epsilon_lucb`: number of cases that every combination starts with",
    ),
    optional(
        "growth",
        ValueType::Number { min: 1.0, max: 1e6 },
        "For `arm_elimination`: growth factor of the rounds [default: 2]",
    ),
    optional(
        "curiosity",
        ValueType::Number { min: 0.0, max: 1e6 },
        "For `matrix_ucb`: exploration weight of uncertainty [default: 1]",
    ),
    optional(
        "batch",
        COUNT,
        "For `hill_climbing` and `bayesian`: combinations between two decisions [default: 1]; for `matrix_ucb`: trials [default: a fifth of all, at most 20]",
    ),
    optional("iterations", COUNT, "For `hill_climbing`: maximum rounds per start [default: 20]"),
    optional("restarts", COUNT, "For `hill_climbing`: number of starts [default: 3]"),
    optional(
        "patience",
        COUNT,
        "For `hill_climbing`: rounds without improvement that end a start [default: 3]",
    ),
];
