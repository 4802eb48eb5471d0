//! Keys of `[models.*]` and `[sim.*]`.

use super::targets::MODEL_SETTINGS;
use super::{
    Effect, MAX_CONNECTIONS, SECONDS, Section, ValueType, choice_words, optional, required,
};
use crate::limits::RETRY_AFTER_CHOICES;
use bakeoff_pace::Strategy;

const STRATEGY_NAMES: [&str; Strategy::ALL.len()] = {
    let mut names = [""; Strategy::ALL.len()];
    let mut index = 0;
    while index < names.len() {
        names[index] = Strategy::ALL[index].as_str();
        index += 1;
    }
    names
};

const RETRY_AFTER_WORDS: [&str; 2] = choice_words(&RETRY_AFTER_CHOICES);

pub(crate) const MODEL: Section = Section::new(
    "Model with a user-defined name",
    &[
        required(
            "provider",
            ValueType::Text,
            "Provider: anthropic, azure, cerebras, gemini, groq, mistral, openai, openai-responses, openrouter, sim or together",
        ),
        required("model", ValueType::Text, "Model name at the provider"),
        optional("base_url", ValueType::Text, "Base URL [default: the provider's]"),
        optional("api_key_env", ValueType::Text, "Environment variable with the API key")
            .effect(Effect::Call),
        optional(
            "headers",
            ValueType::TextMap,
            "Additional headers of every request; `$NAME` is replaced with an environment variable",
        )
        .effect(Effect::Call),
        optional(
            "query",
            ValueType::TextMap,
            "Additional query parameters of every request; `$NAME` is replaced with an environment variable",
        )
        .effect(Effect::Call),
        optional("limits", ValueType::Table(&LIMITS), "Rate and concurrency limits, timeouts and retries")
            .effect(Effect::Call),
        optional("prices", ValueType::Table(&PRICES), "Prices in dollars per million tokens")
            .effect(Effect::Call),
        optional("stream", ValueType::Boolean, "Whether to stream responses [default: false]"),
    ],
)
.with(MODEL_SETTINGS);

const PER_MINUTE: ValueType = ValueType::Integer { min: 1, max: 1_000_000_000_000 };

pub(crate) const LIMITS: Section = Section::new(
    "Rate and concurrency limits, timeouts and retries",
    &[
        optional(
            "strategy",
            ValueType::AnyCaseChoice(&STRATEGY_NAMES),
            "Rate-limiting strategy; `auto` detects the limits [default: auto]",
        ),
        optional(
            "connections",
            ValueType::Connections { max: MAX_CONNECTIONS },
            "Maximum number of requests in flight [default: 10 for `fixed`, 1000 for `auto`, \"4-20-200\" for `adaptive`, otherwise unlimited]",
        ),
        optional("rpm", PER_MINUTE, "Requests per minute, for `auto` and `proactive`"),
        optional(
            "tpm",
            PER_MINUTE,
            "Prompt and completion tokens per minute, for `auto` and `proactive`",
        ),
        optional("itpm", PER_MINUTE, "Prompt tokens per minute, for `auto` and `proactive`"),
        optional("otpm", PER_MINUTE, "Completion tokens per minute, for `auto` and `proactive`"),
        optional(
            "burst",
            ValueType::Integer { min: 1, max: 1_000_000 },
            "For `proactive`: requests that may be sent at once; the others are spread evenly by `rpm` [default: those of one minute]",
        ),
        optional(
            "cooldown_seconds",
            ValueType::Number { min: 0.0, max: 1e9 },
            "For `adaptive`: minimum seconds between two decreases [default: 15]",
        ),
        optional(
            "decrease_factor",
            ValueType::Number { min: 0.0, max: 1.0 },
            "For `adaptive`: factor applied to the window at a decrease [default: 0.8]",
        ),
        optional(
            "scale_up_percent",
            ValueType::Number { min: 0.0, max: 1.0 },
            "For `adaptive`: growth per round after the first rejection, as a share [default: 0.05]",
        ),
        optional(
            "retry_after",
            ValueType::AnyCaseChoice(&RETRY_AFTER_WORDS),
            "For `auto`: whether to wait for the full Retry-After time (`strict`) or to let single requests test it (`test`) [default: test]",
        ),
        optional(
            "max_retries",
            ValueType::Integer { min: 0, max: 1_000_000 },
            "Maximum number of retries of a call [default: 8 after errors; until the timeout after throttling]",
        ),
        optional(
            "timeout",
            SECONDS,
            "Time limit in seconds of a call with its retries, without time in the queue [default: `timeout_seconds` of the suite]",
        ),
        optional("attempt_timeout", SECONDS, "Time limit in seconds of one request of a call"),
    ],
);

const PRICES: Section = Section::new(
    "Prices in dollars per million tokens",
    &[
        required("input", ValueType::Number { min: 0.0, max: f64::MAX }, "Prompt tokens"),
        required("output", ValueType::Number { min: 0.0, max: f64::MAX }, "Completion tokens"),
        optional(
            "cache_read",
            ValueType::Number { min: 0.0, max: f64::MAX },
            "Prompt tokens read from the provider's cache [default: `input`]",
        ),
        optional(
            "cache_write",
            ValueType::Number { min: 0.0, max: f64::MAX },
            "Prompt tokens written to the provider's cache [default: `input`]",
        ),
    ],
);

pub(crate) const SIM: Section = Section::new(
    "Simulated model",
    &[
        optional(
            "answers",
            ValueType::Tables(&CANNED),
            "Responses by user message; the first match is used",
        ),
        optional("default", ValueType::Text, "Response when no entry of `answers` matches"),
        optional(
            "calls",
            ValueType::Tables(&CALL),
            "Tools that the model calls in sequence before it responds",
        ),
        optional(
            "pass",
            ValueType::Number { min: 0.0, max: 1.0 },
            "Probability of the correct response [default: 1]",
        ),
        optional("wrong", ValueType::Text, "Incorrect response"),
        optional(
            "latency_ms",
            ValueType::Number { min: 0.0, max: 1e9 },
            "Latency of responses in milliseconds [default: 0]",
        ),
        optional(
            "latency_sigma",
            ValueType::Number { min: 0.0, max: 10.0 },
            "Spread of the latency (log-normal around `latency_ms`) [default: 0]",
        ),
        optional(
            "output_tokens",
            ValueType::Integer { min: 1, max: 1_000_000_000 },
            "Fixed number of completion tokens per response [default: counted]",
        ),
        optional(
            "bias",
            ValueType::Number { min: -100.0, max: 100.0 },
            "As a judge: bonus of the first of two outputs; negative values are a penalty",
        ),
        optional(
            "noise",
            ValueType::Number { min: 0.0, max: 100.0 },
            "As a judge: standard deviation of the error in the perceived quality of an output",
        ),
    ],
);

const CANNED: Section = Section::new(
    "Response to matching user messages",
    &[
        required("when", ValueType::Text, "Text that the last user message must contain"),
        required("answer", ValueType::Text, "Response"),
        optional(
            "pass",
            ValueType::Number { min: 0.0, max: 1.0 },
            "Probability of this response instead of the incorrect one [default: `pass` of the model]",
        ),
    ],
);

const CALL: Section = Section::new(
    "Tool call",
    &[
        required("tool", ValueType::Text, "Tool name"),
        optional("arguments", ValueType::OpenTable, "Arguments of the call [default: none]"),
    ],
);
