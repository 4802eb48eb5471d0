//! Fields of `[models.*]` and `[sim.*]`.

use super::{Effect, MAX_CONNECTIONS, SECONDS, Section, Shape, optional, required};

pub(crate) const MODEL: Section = Section::new(
    "A model under a name of your own.",
    &[
        required(
            "provider",
            Shape::Text,
            "Who serves it: anthropic, azure, cerebras, gemini, groq, mistral, openai, openai-responses, openrouter, sim or together.",
        ),
        required("model", Shape::Text, "The provider's name of the model."),
        optional("base_url", Shape::Text, "Another address than the provider's."),
        optional("api_key_env", Shape::Text, "The environment variable that holds the key.")
            .effect(Effect::Call),
        optional(
            "headers",
            Shape::TextMap,
            "Sent with every request; `$NAME` takes an environment variable.",
        )
        .effect(Effect::Call),
        optional(
            "query",
            Shape::TextMap,
            "Added to every address; `$NAME` takes an environment variable.",
        )
        .effect(Effect::Call),
        optional("limits", Shape::Table(&LIMITS), "How much of it may be used.")
            .effect(Effect::Call),
        optional("prices", Shape::Table(&PRICES), "Dollars per million tokens.")
            .effect(Effect::Call),
        optional("stream", Shape::Boolean, "Ask for the answer in pieces; false when absent."),
    ],
);

const PER_MINUTE: Shape = Shape::Integer { least: 1, most: 1_000_000_000_000 };

const LIMITS: Section = Section::new(
    "How much of a model may be used, and how hard a call is tried.",
    &[
        optional(
            "strategy",
            Shape::Choice(&["auto", "fixed", "adaptive", "reactive", "proactive", "none"]),
            "By what it is decided when a request goes out; `auto` when absent, which finds the limits out.",
        ),
        optional(
            "connections",
            Shape::Connections { most: MAX_CONNECTIONS },
            "Most requests in flight; when absent, 10 for `fixed`, 400 for `auto`, \"4-20-200\" for `adaptive`, else no bound.",
        ),
        optional("rpm", PER_MINUTE, "Requests per minute, for `auto` and `proactive`."),
        optional(
            "tpm",
            PER_MINUTE,
            "Tokens of prompts and answers per minute, for `auto` and `proactive`.",
        ),
        optional("itpm", PER_MINUTE, "Tokens of prompts per minute, for `auto` and `proactive`."),
        optional("otpm", PER_MINUTE, "Tokens of answers per minute, for `auto` and `proactive`."),
        optional(
            "burst",
            Shape::Integer { least: 1, most: 1_000_000 },
            "Of `proactive`: requests that may go out at once, the others spread evenly by `rpm`; a whole minute's when absent.",
        ),
        optional(
            "cooldown_seconds",
            Shape::Number { least: 0.0, most: 1e9 },
            "Of `adaptive`: least time between two cuts; 15 when absent.",
        ),
        optional(
            "decrease_factor",
            Shape::Number { least: 0.0, most: 1.0 },
            "Of `adaptive`: what is left of the window after a cut; 0.8 when absent.",
        ),
        optional(
            "scale_up_percent",
            Shape::Number { least: 0.0, most: 1.0 },
            "Of `adaptive`: growth per round after the first rejection, as a share; 0.05 when absent.",
        ),
        optional(
            "retry_after",
            Shape::Choice(&["strict", "test"]),
            "Of `auto`: whether an announced wait is kept in full, or single requests may test it; `strict` when absent.",
        ),
        optional(
            "max_retries",
            Shape::Integer { least: 0, most: 1_000_000 },
            "Most retries of a call; when absent, 8 after errors, and after throttling until the time is up.",
        ),
        optional(
            "timeout",
            SECONDS,
            "Seconds for a whole call, waiting for its turn left out; the suite's `timeout_seconds` when absent.",
        ),
        optional("attempt_timeout", SECONDS, "Seconds for one attempt of a call."),
    ],
);

const PRICES: Section = Section::new(
    "Dollars per million tokens.",
    &[
        required("input", Shape::Number { least: 0.0, most: f64::MAX }, "Prompt tokens."),
        required("output", Shape::Number { least: 0.0, most: f64::MAX }, "Answer tokens."),
        optional(
            "cache_read",
            Shape::Number { least: 0.0, most: f64::MAX },
            "Prompt tokens read from the provider's cache; as `input` when absent.",
        ),
        optional(
            "cache_write",
            Shape::Number { least: 0.0, most: f64::MAX },
            "Prompt tokens written to the provider's cache; as `input` when absent.",
        ),
    ],
);

pub(crate) const SIM: Section = Section::new(
    "A simulated model.",
    &[
        optional(
            "answers",
            Shape::Tables(&CANNED),
            "Answers by what the user said; the first that fits is given.",
        ),
        optional("default", Shape::Text, "The answer when none of `answers` fits."),
        optional(
            "calls",
            Shape::Tables(&CALL),
            "Tools that it calls, one after the other, before it answers.",
        ),
        optional(
            "pass",
            Shape::Number { least: 0.0, most: 1.0 },
            "Probability that the right answer is given; 1 when absent.",
        ),
        optional("wrong", Shape::Text, "The wrong answer."),
        optional(
            "latency_ms",
            Shape::Number { least: 0.0, most: 1e9 },
            "How long its answers take; 0 when absent.",
        ),
        optional(
            "latency_sigma",
            Shape::Number { least: 0.0, most: 10.0 },
            "Spread of the latency (log-normal around `latency_ms`); 0 when absent.",
        ),
        optional(
            "output_tokens",
            Shape::Integer { least: 1, most: 1_000_000_000 },
            "Tokens of each answer, instead of counting.",
        ),
        optional(
            "bias",
            Shape::Number { least: -100.0, most: 100.0 },
            "Makes it a judge that likes the first of two answers better than it is, or, when negative, worse.",
        ),
        optional(
            "noise",
            Shape::Number { least: 0.0, most: 100.0 },
            "Makes it a judge that misperceives the quality of each answer, with this standard deviation.",
        ),
    ],
);

const CANNED: Section = Section::new(
    "An answer prepared for something that the user may say.",
    &[
        required("when", Shape::Text, "Fits when the last user message contains it."),
        required("answer", Shape::Text, "The answer."),
        optional(
            "pass",
            Shape::Number { least: 0.0, most: 1.0 },
            "Probability that it is given instead of the wrong one; the model's `pass` when absent.",
        ),
    ],
);

const CALL: Section = Section::new(
    "A tool that is called.",
    &[
        required("tool", Shape::Text, "Which one."),
        optional("arguments", Shape::Open, "What it is given; nothing when absent."),
    ],
);
