//! The suite file, described as data.
//!
//! Reading, the errors for what is written wrong, and the JSON Schema all come from these tables.

mod roles;

use bakeoff_check::{KindInfo, ParameterInfo, ParameterType};

/// A table of the file.
#[derive(Debug)]
pub(crate) struct Section {
    /// What it is for.
    pub(crate) about: &'static str,
    /// The keys it may have.
    pub(crate) fields: &'static [Field],
}

/// A key of a table.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    pub(crate) required: bool,
    /// What it means, with its default.
    pub(crate) about: &'static str,
    /// Printed with errors about its value.
    pub(crate) code: Option<&'static str>,
}

/// What may be written for a key.
#[derive(Debug)]
pub(crate) enum Shape {
    /// Text.
    Text,
    /// Text that is a template over the case's fields.
    Template,
    /// Yes or no.
    Boolean,
    /// A whole number in a range.
    Integer { least: i64, most: i64 },
    /// Any number in a range.
    Number { least: f64, most: f64 },
    /// Requests in flight: a whole number in a range, or `"min-start-max"`.
    Connections { most: u32 },
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A list of texts; when `some` is true it must not be empty.
    Texts { some: bool },
    /// A list of some of these words.
    Words(&'static [&'static str]),
    /// A table from names to texts.
    TextMap,
    /// A table from names to lists of texts.
    TextLists,
    /// A table of its own.
    Table(&'static Section),
    /// Any number of tables.
    Tables(&'static Section),
    /// Tables under names that the user chooses.
    Named(&'static Section),
    /// A table whose keys are the user's.
    Open,
    /// Text, or a table whose keys are the user's.
    TextOrOpen,
    /// Any number of tables whose keys are the user's.
    OpenList,
    /// Anything.
    Any,
    /// Any number of checks; their keys depend on their kind.
    Checks,
}

pub(super) const fn optional(name: &'static str, shape: Shape, about: &'static str) -> Field {
    Field { name, shape, required: false, about, code: None }
}

pub(super) const fn required(name: &'static str, shape: Shape, about: &'static str) -> Field {
    Field { name, shape, required: true, about, code: None }
}

pub(super) const fn coded(code: &'static str, field: Field) -> Field {
    Field {
        code: Some(code),
        name: field.name,
        shape: field.shape,
        required: field.required,
        about: field.about,
    }
}

/// Most trials of one case.
pub const MAX_TRIALS: u32 = 1000;

const ANY_NUMBER: f64 = f64::MAX;

/// The whole file.
pub(crate) const SUITE_FILE: Section = Section {
    about: "A Bakeoff suite: cases, targets, checks and settings.",
    fields: &SUITE_FILE_FIELDS,
};

const SUITE_FILE_FIELDS: [Field; 8] = [
    optional("suite", Shape::Table(&SUITE), "Settings of the suite."),
    optional("models", Shape::Named(&MODEL), "Models under names of your own."),
    optional(
        "roles",
        Shape::TextMap,
        "Who fills which role in `bakeoff run`: a name under [models] or [sim], or provider/model.",
    ),
    optional(
        "select",
        Shape::Table(&roles::SELECT),
        "Which combination of models `bakeoff select` looks for.",
    ),
    required("target", Shape::Tables(&TARGET), "What is under test."),
    required("cases", Shape::Table(&CASES), "What the targets are asked."),
    optional("check", Shape::Checks, "What makes an answer right."),
    optional("sim", Shape::Named(&SIM), "Simulated models under names of your own."),
];

/// The same, where only its models are of interest.
pub(crate) const MODELS_FILE: Section = {
    let [suite, models, roles, select, target, cases, check, sim] = SUITE_FILE_FIELDS;
    Section {
        about: SUITE_FILE.about,
        fields: &[
            suite,
            models,
            roles,
            select,
            Field { required: false, ..target },
            Field { required: false, ..cases },
            check,
            sim,
        ],
    }
};

const SUITE: Section = Section {
    about: "Settings of the suite.",
    fields: &[
        optional("name", Shape::Text, "Its name; the folder's name when absent."),
        coded(
            "EVAL_INVALID_TRIALS_CONFIG",
            optional(
                "trials",
                Shape::Integer { least: 1, most: MAX_TRIALS as i64 },
                "Attempts of each target at each case; 1 when absent.",
            ),
        ),
        coded(
            "EVAL_INVALID_THRESHOLD",
            optional(
                "threshold",
                Shape::Number { least: 0.0, most: 1.0 },
                "Share of a case's trials that must pass; 1 when absent.",
            ),
        ),
        optional(
            "parallel",
            Shape::Integer { least: 1, most: 1_000_000 },
            "Most trials at once over all targets; when absent, models are bounded by their limits and programs by the number of cores.",
        ),
        optional(
            "timeout_seconds",
            Shape::Number { least: 0.001, most: 1e9 },
            "How long a program or a model call may take; 600 when absent.",
        ),
        optional(
            "early_stop",
            Shape::Choice(&["off", "decided", "confident"]),
            "When a case is stopped before its last trial: never, when no missing trial can change its verdict, or when the full run would give the same one at the risk `alpha`; `off` when absent.",
        ),
        optional(
            "alpha",
            Shape::Number { least: 1e-9, most: 0.5 },
            "The risk that `confident` gives the run another verdict than all its trials would; 0.05 when absent.",
        ),
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
            Shape::Number { least: 0.001, most: 1e9 },
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
};

const MODEL: Section = Section {
    about: "A model under a name of your own.",
    fields: &[
        required(
            "provider",
            Shape::Text,
            "Who serves it: anthropic, azure, cerebras, gemini, groq, mistral, openai, openai-responses, openrouter, sim or together.",
        ),
        required("model", Shape::Text, "The provider's name of the model."),
        optional("base_url", Shape::Text, "Another address than the provider's."),
        optional("api_key_env", Shape::Text, "The environment variable that holds the key."),
        optional(
            "headers",
            Shape::TextMap,
            "Sent with every request; `$NAME` takes an environment variable.",
        ),
        optional(
            "query",
            Shape::TextMap,
            "Added to every address; `$NAME` takes an environment variable.",
        ),
        optional("limits", Shape::Table(&LIMITS), "How much of it may be used."),
        optional("prices", Shape::Table(&PRICES), "Dollars per million tokens."),
        optional("stream", Shape::Boolean, "Ask for the answer in pieces; false when absent."),
    ],
};

/// Most requests in flight that can be asked for.
pub(crate) const MOST_CONNECTIONS: u32 = 100_000;

const PER_MINUTE: Shape = Shape::Integer { least: 1, most: 1_000_000_000_000 };

const SECONDS: Shape = Shape::Number { least: 0.001, most: 1e9 };

const LIMITS: Section = Section {
    about: "How much of a model may be used, and how hard a call is tried.",
    fields: &[
        optional(
            "strategy",
            Shape::Choice(&["auto", "fixed", "adaptive", "reactive", "proactive", "none"]),
            "By what it is decided when a request goes out; `auto` when absent, which finds the limits out.",
        ),
        optional(
            "connections",
            Shape::Connections { most: MOST_CONNECTIONS },
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
};

const PRICES: Section = Section {
    about: "Dollars per million tokens.",
    fields: &[
        required("input", Shape::Number { least: 0.0, most: ANY_NUMBER }, "Prompt tokens."),
        required("output", Shape::Number { least: 0.0, most: ANY_NUMBER }, "Answer tokens."),
        optional(
            "cache_read",
            Shape::Number { least: 0.0, most: ANY_NUMBER },
            "Prompt tokens read from the provider's cache; as `input` when absent.",
        ),
        optional(
            "cache_write",
            Shape::Number { least: 0.0, most: ANY_NUMBER },
            "Prompt tokens written to the provider's cache; as `input` when absent.",
        ),
    ],
};

/// Settings of a request to a model.
const REQUEST: [Field; 9] = [
    optional("temperature", Shape::Number { least: 0.0, most: 2.0 }, "Sampling temperature."),
    optional("top_p", Shape::Number { least: 0.0, most: 1.0 }, "Nucleus sampling."),
    optional(
        "max_tokens",
        Shape::Integer { least: 1, most: 100_000_000 },
        "Most tokens of the answer.",
    ),
    optional("stop", Shape::Texts { some: false }, "Texts that end the answer."),
    optional(
        "thinking",
        Shape::Text,
        "How much the model should think, in the provider's words: low, medium, high, …",
    ),
    optional(
        "thinking_tokens",
        Shape::Integer { least: 0, most: 100_000_000 },
        "Most tokens it may think; 0 switches thinking off.",
    ),
    optional("json", Shape::Boolean, "Demand a JSON object; false when absent."),
    optional("json_schema", Shape::Open, "Demand JSON that fits this schema."),
    optional("extra", Shape::Open, "Fields for the provider's request as they are."),
];

const TARGET: Section = {
    let [temperature, top_p, max_tokens, stop, thinking, thinking_tokens, json, json_schema, extra] =
        REQUEST;
    Section {
        about: "What is under test: a model with a prompt, a chain of models, a program, a coding agent or an HTTP service.",
        fields: &[
            required("name", Shape::Text, "Its name in results."),
            optional(
                "model",
                Shape::Text,
                "A name under [models] or [sim], provider/model, or role/name for who fills a role; with `agent`, the agent's name of its model.",
            ),
            optional(
                "command",
                Shape::Texts { some: true },
                "A program and its arguments: the prompt on standard input, or in an argument in place of `{prompt}`; the answer on standard output.",
            ),
            optional("agent", Shape::Choice(&AGENTS), "A coding agent that is installed here."),
            optional("url", Shape::Text, "The address of an HTTP service."),
            // Needed by all but chains; who reads targets says so.
            optional(
                "prompt",
                Shape::Template,
                "What it is asked; steps of a chain have their own.",
            ),
            optional(
                "chain",
                Shape::Tables(&roles::STEP),
                "Models that are asked one after the other; the answer of the last is the target's.",
            ),
            optional(
                "roles",
                Shape::Texts { some: true },
                "Of a program: roles whose models it is told in its environment, as `BAKEOFF_MODEL_<ROLE>`.",
            ),
            optional("system", Shape::Template, "Instructions for a model."),
            optional(
                "gate",
                Shape::Boolean,
                "Whether it counts for the run's verdict; true when absent.",
            ),
            optional(
                "timeout_seconds",
                Shape::Number { least: 0.001, most: 1e9 },
                "How long a program, an agent, a service or a model with tools may take; the suite's when absent.",
            ),
            optional(
                "workspace",
                Shape::Text,
                "Of a program, agent or model with tools: the folder beside the suite that each trial gets a copy of; an empty one when absent.",
            ),
            optional(
                "protocol",
                Shape::Choice(&["text", "jsonl"]),
                "Of a program: whether it is started for each trial (`text`), or stays and answers line by line (`jsonl`); `text` when absent.",
            ),
            optional(
                "tools",
                Shape::Words(&bakeoff_agent::TOOL_NAMES),
                "Of a model: tools that it may call, until it answers without calling one.",
            ),
            optional(
                "mcp",
                Shape::Tables(&MCP),
                "Of a model: MCP servers whose tools it may call.",
            ),
            optional(
                "max_turns",
                Shape::Integer { least: 1, most: 10_000 },
                "Of a model with tools: most calls of the model in a trial; 50 when absent.",
            ),
            optional(
                "tool_timeout_seconds",
                Shape::Number { least: 0.001, most: 1e9 },
                "Of a model with tools: how long one call of a tool may take; 120 when absent.",
            ),
            optional(
                "fetch_hosts",
                Shape::Texts { some: true },
                "Of a model with the tool `http_fetch`: hosts that it may fetch from, such as \"example.com\" or \"127.0.0.1:8080\"; \"*\" is all of them.",
            ),
            optional(
                "max_context_tokens",
                Shape::Integer { least: 1_000, most: 100_000_000 },
                "Of a model with tools: its window; of a longer conversation less is sent. Everything is sent when absent.",
            ),
            optional("args", Shape::Texts { some: false }, "Of an agent: more arguments."),
            optional(
                "method",
                Shape::Choice(&["POST", "GET", "PUT", "PATCH", "DELETE"]),
                "Of a service: the method of the request; POST when absent.",
            ),
            optional(
                "headers",
                Shape::TextMap,
                "Of a service: sent with every request; `$NAME` takes an environment variable.",
            ),
            optional(
                "body",
                Shape::TextOrOpen,
                "Of a service: a template of the JSON that is sent, or a table whose texts are templates; `{ prompt = \"{{ prompt }}\" }` when absent.",
            ),
            optional(
                "answer",
                Shape::Text,
                "Of a service: where the answer is in the JSON that comes back, as a JSONPath; all of it when absent.",
            ),
            optional(
                "usage",
                Shape::Table(&USAGE),
                "Of a service: where tokens and cost are in the JSON that comes back.",
            ),
            optional(
                "connections",
                Shape::Integer { least: 1, most: MOST_CONNECTIONS as i64 },
                "Of a service: most requests in flight; 10 when absent.",
            ),
            temperature,
            top_p,
            max_tokens,
            stop,
            thinking,
            thinking_tokens,
            json,
            json_schema,
            extra,
        ],
    }
};

const MCP: Section = Section {
    about: "An MCP server: a program that has tools.",
    fields: &[
        required("name", Shape::Text, "Its tools are called `<name>__<tool>`."),
        required(
            "command",
            Shape::Texts { some: true },
            "The program and its arguments; it runs in the trial's workspace.",
        ),
        optional("tools", Shape::Texts { some: true }, "Only these of its tools; all when absent."),
    ],
};

/// Coding agents that are known by name.
pub(crate) const AGENTS: [&str; 5] = ["claude", "codex", "gemini", "opencode", "cursor-agent"];

const USAGE: Section = Section {
    about: "Where tokens and cost are in the JSON that a service answers with.",
    fields: &[
        optional("input_tokens", Shape::Text, "A JSONPath to the tokens of the prompt."),
        optional("output_tokens", Shape::Text, "A JSONPath to the tokens of the answer."),
        optional("cost_usd", Shape::Text, "A JSONPath to the dollars that it cost."),
    ],
};

const CASES: Section = Section {
    about: "What the targets are asked.",
    fields: &[
        optional("file", Shape::Text, "A .jsonl, .json, .csv or .toml file beside the suite."),
        optional(
            "inline",
            Shape::OpenList,
            "Cases written here. Of their keys, `id`, `tags`, `checks` (checks of the case alone), and for programs `workspace` and `workspace_subdir` have a meaning of their own.",
        ),
    ],
};

const SIM: Section = Section {
    about: "A simulated model.",
    fields: &[
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
};

const CANNED: Section = Section {
    about: "An answer prepared for something that the user may say.",
    fields: &[
        required("when", Shape::Text, "Fits when the last user message contains it."),
        required("answer", Shape::Text, "The answer."),
        optional(
            "pass",
            Shape::Number { least: 0.0, most: 1.0 },
            "Probability that it is given instead of the wrong one; the model's `pass` when absent.",
        ),
    ],
};

const CALL: Section = Section {
    about: "A tool that is called.",
    fields: &[
        required("tool", Shape::Text, "Which one."),
        optional("arguments", Shape::Open, "What it is given; nothing when absent."),
    ],
};

/// Keys that every kind of check has.
pub(crate) const CHECK_COMMON: Section = Section {
    about: "What makes an answer right.",
    fields: &[
        required("kind", Shape::Text, "What it looks at."),
        optional("id", Shape::Text, "Its name in results; made from its kind when absent."),
        optional("negate", Shape::Boolean, "Pass when it would fail; false when absent."),
        optional(
            "required",
            Shape::Boolean,
            "Whether the trial depends on it; true when absent. Others count for the score.",
        ),
        optional(
            "weight",
            Shape::Number { least: 0.0, most: 1e6 },
            "Its share of the score; 1 when absent.",
        ),
        optional("targets", Shape::Texts { some: true }, "Only for these targets."),
        optional("tags", Shape::Texts { some: true }, "Only for cases with one of these tags."),
    ],
};

/// The keys that a kind of check has of its own.
pub(crate) fn own_fields(kind: &KindInfo) -> Vec<Field> {
    kind.all_parameters().map(own_field).collect()
}

fn own_field(parameter: &ParameterInfo) -> Field {
    let shape = match parameter.kind {
        ParameterType::Text => Shape::Text,
        ParameterType::Template => Shape::Template,
        ParameterType::Texts | ParameterType::Templates => Shape::Texts { some: true },
        ParameterType::Boolean => Shape::Boolean,
        ParameterType::Integer { least, most } => Shape::Integer { least, most },
        ParameterType::Number { least, most } => Shape::Number { least, most },
        ParameterType::Choice(words) => Shape::Choice(words),
        ParameterType::Table | ParameterType::ValueTable => Shape::Open,
        ParameterType::TemplateTable => Shape::TextMap,
        ParameterType::Value => Shape::Any,
    };
    Field { required: parameter.required, ..optional(parameter.name, shape, parameter.about) }
}
