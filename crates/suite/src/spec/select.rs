//! Fields of `[select]`.

use super::{Field, Section, Shape, optional, required};

const SHARE: Shape = Shape::Number { least: 0.0, most: 1.0 };
const WEIGHT: Shape = Shape::Number { least: 0.0, most: 1e6 };
const COUNT: Shape = Shape::Integer { least: 1, most: 1_000_000_000 };

/// `[select]`.
pub(super) const SELECT: Section =
    Section::new("Which combination of models `bakeoff select` looks for.", &FIELDS);

const FIELDS: [Field; 24] = [
    optional(
        "target",
        Shape::Text,
        "The target whose roles are filled; may be left out when exactly one target uses roles.",
    ),
    required(
        "roles",
        Shape::TextLists,
        "For each role its candidates, such as `solver = [\"small\", \"large\"]`; a role without them is filled as [roles] says.",
    ),
    optional("describe", Shape::TextMap, "What roles do, for the model that proposes."),
    optional(
        "method",
        Shape::Choice(bakeoff_select::SELECTOR_NAMES),
        "How it is searched; `auto` when absent.",
    ),
    optional(
        "confidence",
        Shape::Number { least: 0.5, most: 0.9999 },
        "Of `auto` and `strict`: how sure the choice must be; 0.95 when absent.",
    ),
    optional(
        "epsilon",
        SHARE,
        "Of `auto` and `epsilon_lucb`: combinations that differ by no more are as good as each other; 0.01 when absent.",
    ),
    optional(
        "cost_weight",
        WEIGHT,
        "What the dearest combination loses of its score against one for free; 0 when absent.",
    ),
    optional(
        "latency_weight",
        WEIGHT,
        "What the slowest combination loses of its score against one that takes no time; 0 when absent.",
    ),
    optional(
        "cheapest_within",
        SHARE,
        "Look for the cheapest combination whose score is at most so much below the best.",
    ),
    optional(
        "max_task_usd",
        Shape::Number { least: 0.0, most: 1e9 },
        "Look for the best combination that costs at most so many dollars for a case.",
    ),
    optional(
        "max_cost_usd",
        Shape::Number { least: 0.0, most: 1e9 },
        "Nothing more is tried once the search has cost so many dollars.",
    ),
    optional(
        "max_cells",
        Shape::Integer { least: 1, most: i64::MAX },
        "Most cells that are tried: a combination at a case is a cell.",
    ),
    optional(
        "deadline",
        Shape::Number { least: 0.001, most: 1e9 },
        "Nothing more is tried once the search has taken so many seconds.",
    ),
    optional(
        "proposer",
        Shape::Text,
        "Of `lm_proposal`: the model that proposes; a name under [models] or [sim], or provider/model.",
    ),
    optional(
        "fraction",
        SHARE,
        "Of `random_search`, `bayesian` and `matrix_ucb`: share of the combinations, or cells, to try.",
    ),
    optional("threshold", SHARE, "Of `threshold_se`: the mean score that is good enough."),
    optional(
        "width",
        Shape::Number { least: 0.0, most: 1e6 },
        "Of `arm_elimination`, `threshold_se` and `epsilon_lucb`: standard errors that bounds lie from the mean; 1 when absent.",
    ),
    optional(
        "first",
        COUNT,
        "Of `arm_elimination`, `threshold_se` and `epsilon_lucb`: cases that every combination gets first.",
    ),
    optional(
        "growth",
        Shape::Number { least: 1.0, most: 1e6 },
        "Of `arm_elimination`: what each round is larger by; 2 when absent.",
    ),
    optional(
        "curiosity",
        Shape::Number { least: 0.0, most: 1e6 },
        "Of `matrix_ucb`: what uncertainty is worth; 1 when absent.",
    ),
    optional(
        "batch",
        COUNT,
        "Of `hill_climbing`, `bayesian` and `matrix_ucb`: what is tried between two decisions; 1 when absent.",
    ),
    optional("iterations", COUNT, "Of `hill_climbing`: rounds for each start; 20 when absent."),
    optional("restarts", COUNT, "Of `hill_climbing`: how often to start; 3 when absent."),
    optional(
        "patience",
        COUNT,
        "Of `hill_climbing`: rounds without improvement that end a start; 3 when absent.",
    ),
];
