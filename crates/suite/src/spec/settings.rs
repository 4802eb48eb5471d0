//! Fields of `[suite]`.

use super::{Effect, MAX_TRIALS, SECONDS, Section, Shape, coded, optional};

pub(crate) const SUITE: Section = Section::new(
    "Settings of the suite.",
    &[
        optional("name", Shape::Text, "Its name; the folder's name when absent."),
        coded(
            "EVAL_INVALID_TRIALS_CONFIG",
            optional(
                "trials",
                Shape::Integer { least: 1, most: MAX_TRIALS as i64 },
                "Attempts of each target at each case; 1 when absent.",
            ),
        ).effect(Effect::Verdict),
        coded(
            "EVAL_INVALID_THRESHOLD",
            optional(
                "threshold",
                Shape::Number { least: 0.0, most: 1.0 },
                "Share of a case's trials that must pass; 1 when absent.",
            ),
        ).effect(Effect::Verdict),
        optional(
            "parallel",
            Shape::Integer { least: 1, most: 1_000_000 },
            "Most trials at once over all targets; when absent, models are bounded by their limits and programs by the number of cores.",
        ),
        optional(
            "timeout_seconds",
            SECONDS,
            "How long a program or a model call may take; 600 when absent.",
        ),
        optional(
            "early_stop",
            Shape::Choice(&["off", "decided", "confident"]),
            "When a case is stopped before its last trial: never, when no missing trial can change its verdict, or when the full run would give the same one at the risk `alpha`; `off` when absent.",
        ).effect(Effect::Verdict),
        optional(
            "alpha",
            Shape::Number { least: 1e-9, most: 0.5 },
            "The risk that `confident` gives the run another verdict than all its trials would; 0.05 when absent.",
        ).effect(Effect::Verdict),
        optional(
            "lookahead",
            Shape::Integer { least: 1, most: MAX_TRIALS as i64 },
            "Trials of a case that may be under way at once although an earlier one may make them needless; 1 when absent. Those that are needed in any case always may.",
        ),
        optional(
            "max_error_rate",
            Shape::Number { least: 0.0, most: 1.0 },
            "A target is given up when a larger share of its planned trials errors; 0.1 when absent, 1 means never.",
        ),
        optional(
            "max_cost_usd",
            Shape::Number { least: 0.0, most: 1e9 },
            "No trial starts once the run has cost so many dollars.",
        ),
        optional(
            "max_tokens",
            Shape::Integer { least: 1, most: i64::MAX },
            "No trial starts once the run has used so many tokens.",
        ),
        optional(
            "deadline",
            SECONDS,
            "No trial starts once the run has taken so many seconds.",
        ),
        optional(
            "cost_warning",
            Shape::Integer { least: 1, most: i64::MAX },
            "Warn before a run of so many trials; 100 when absent.",
        ),
        optional(
            "artifacts",
            Shape::Choice(&["all", "failures", "none"]),
            "Which trials get a folder of files; `all` when absent. The journal always has everything.",
        ),
        optional(
            "cache",
            Shape::Choice(&["run", "shared", "none"]),
            "Whose answers are used again: this run's (when it is resumed), every run's, or nobody's; `run` when absent.",
        ),
    ],
);
