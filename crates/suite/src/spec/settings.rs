//! Keys of `[suite]`.

use super::{Effect, MAX_TRIALS, SECONDS, Section, ValueType, choice_words, coded, optional};
use crate::settings::{ARTIFACT_CHOICES, CACHE_CHOICES, EARLY_STOP_CHOICES};

const EARLY_STOP_WORDS: [&str; 3] = choice_words(&EARLY_STOP_CHOICES);
const ARTIFACT_WORDS: [&str; 3] = choice_words(&ARTIFACT_CHOICES);
const CACHE_WORDS: [&str; 3] = choice_words(&CACHE_CHOICES);

pub(crate) const SUITE: Section = Section::new(
    "Suite settings",
    &[
        optional("name", ValueType::Text, "Suite name [default: name of its folder]"),
        coded(
            "EVAL_INVALID_TRIALS_CONFIG",
            optional(
                "trials",
                ValueType::Integer { min: 1, max: MAX_TRIALS as i64 },
                "Number of trials of each target on each case [default: 1]",
            ),
        ).effect(Effect::Verdict),
        coded(
            "EVAL_INVALID_THRESHOLD",
            optional(
                "threshold",
                ValueType::Number { min: 0.0, max: 1.0 },
                "Share of a case's trials that must pass [default: 1]",
            ),
        ).effect(Effect::Verdict),
        optional(
            "min_score",
            ValueType::Number { min: 0.0, max: 1.0 },
            "Lowest mean score with which a target passes, in addition to the rule about its cases [default: none]",
        ).effect(Effect::Verdict),
        optional(
            "judge",
            ValueType::Text,
            "Judge of checks without `model`: a name under [models], or provider/model",
        ).effect(Effect::Verdict),
        optional(
            "parallel",
            ValueType::Integer { min: 1, max: 1_000_000 },
            "Maximum number of concurrent trials over all targets [default: limits of the models; number of cores for programs]",
        ),
        optional(
            "timeout_seconds",
            SECONDS,
            "Time limit in seconds of a program or a model call [default: 600]",
        ),
        optional(
            "early_stop",
            ValueType::Choice(&EARLY_STOP_WORDS),
            "When to stop a case before its last trial: `off` (never), `decided` (no remaining trial can change its verdict) or `confident` (the full run would give the same verdict, with error risk `alpha`) [default: off]",
        ).effect(Effect::Verdict),
        optional(
            "alpha",
            ValueType::Number { min: 1e-9, max: 0.5 },
            "Risk that `confident` gives the run another verdict than all its trials would [default: 0.05]",
        ).effect(Effect::Verdict),
        optional(
            "lookahead",
            ValueType::Integer { min: 1, max: MAX_TRIALS as i64 },
            "Maximum number of concurrent trials of a case that an earlier trial may make unnecessary; trials needed in any case are not limited [default: 1]",
        ),
        optional(
            "max_error_rate",
            ValueType::Number { min: 0.0, max: 1.0 },
            "Maximum share of planned trials with errors before the target is stopped; 1 disables the limit [default: 0.1]",
        ),
        optional(
            "max_cost_usd",
            ValueType::Number { min: 0.0, max: 1e9 },
            "Budget of the run in dollars; no trial starts after it is spent",
        ),
        optional(
            "max_tokens",
            ValueType::Integer { min: 1, max: i64::MAX },
            "Token budget of the run; no trial starts after it is used up",
        ),
        optional(
            "deadline",
            SECONDS,
            "Time budget of the run in seconds; no trial starts after it",
        ),
        optional(
            "cost_warning",
            ValueType::Integer { min: 1, max: i64::MAX },
            "Number of trials from which a run starts with a warning [default: 100]",
        ),
        optional(
            "artifacts",
            ValueType::Choice(&ARTIFACT_WORDS),
            "Trials that get a folder with artifacts; the journal always has all results [default: all]",
        ),
        optional(
            "cache",
            ValueType::Choice(&CACHE_WORDS),
            "Scope of the response cache: `run` (this run, when it is resumed), `shared` (all runs) or `none` [default: run]",
        ),
    ],
);
