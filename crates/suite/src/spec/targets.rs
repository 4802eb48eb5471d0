//! Fields of `[[target]]` and `[[target.chain]]`.

use super::{Field, MAX_CONNECTIONS, SECONDS, Section, Shape, optional, required};

/// What a target is, told by its keys. The order is that of error messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TargetSort {
    Chain,
    Program,
    Agent,
    Service,
    Model,
    /// A model with tools.
    Loop,
}

const MODELS: &[TargetSort] = &[TargetSort::Model, TargetSort::Loop];
const LOOPS: &[TargetSort] = &[TargetSort::Loop];
const PROGRAMS: &[TargetSort] = &[TargetSort::Program];
const CODING_AGENTS: &[TargetSort] = &[TargetSort::Agent];
const SERVICES: &[TargetSort] = &[TargetSort::Service];
const WITH_WORKSPACE: &[TargetSort] = &[TargetSort::Program, TargetSort::Agent, TargetSort::Loop];
const WITH_TIMEOUT: &[TargetSort] =
    &[TargetSort::Program, TargetSort::Agent, TargetSort::Service, TargetSort::Loop];

/// Settings of a request to a model.
const REQUEST: [Field; 9] = [
    optional("temperature", Shape::Number { least: 0.0, most: 2.0 }, "Sampling temperature.")
        .only_for(MODELS),
    optional("top_p", Shape::Number { least: 0.0, most: 1.0 }, "Nucleus sampling.")
        .only_for(MODELS),
    optional(
        "max_tokens",
        Shape::Integer { least: 1, most: 100_000_000 },
        "Most tokens of the answer.",
    )
    .only_for(MODELS),
    optional("stop", Shape::Texts { some: false }, "Texts that end the answer.").only_for(MODELS),
    optional(
        "thinking",
        Shape::Text,
        "How much the model should think, in the provider's words: low, medium, high, …",
    )
    .only_for(MODELS),
    optional(
        "thinking_tokens",
        Shape::Integer { least: 0, most: 100_000_000 },
        "Most tokens it may think; 0 switches thinking off.",
    )
    .only_for(MODELS),
    optional("json", Shape::Boolean, "Demand a JSON object; false when absent.").only_for(MODELS),
    optional("json_schema", Shape::Open, "Demand JSON that fits this schema.").only_for(MODELS),
    optional("extra", Shape::Open, "Fields for the provider's request as they are.")
        .only_for(MODELS),
];

pub(crate) const TARGET: Section = Section::new(
        "What is under test: a model with a prompt, a chain of models, a program, a coding agent or an HTTP service.",
        &[
            required("name", Shape::Text, "Its name in results."),
            optional(
                "model",
                Shape::Text,
                "A name under [models] or [sim], provider/model, or role/name for who fills a role; with `agent`, the agent's name of its model.",
            ).defines(TargetSort::Model),
            optional(
                "command",
                Shape::Texts { some: true },
                "A program and its arguments: the prompt on standard input, or in an argument in place of `{prompt}`; the answer on standard output.",
            ).defines(TargetSort::Program),
            optional("agent", Shape::Choice(&AGENTS), "A coding agent that is installed here.").defines(TargetSort::Agent),
            optional("url", Shape::Text, "The address of an HTTP service.").defines(TargetSort::Service),
            // Needed by all but chains; who reads targets says so.
            optional(
                "prompt",
                Shape::Template,
                "What it is asked; steps of a chain have their own.",
            ),
            optional(
                "chain",
                Shape::Tables(&STEP),
                "Models that are asked one after the other; the answer of the last is the target's.",
            ).defines(TargetSort::Chain),
            optional(
                "roles",
                Shape::Texts { some: true },
                "Of a program: roles whose models it is told in its environment, as `BAKEOFF_MODEL_<ROLE>`.",
            ).only_for(PROGRAMS),
            optional("system", Shape::Template, "Instructions for a model.").only_for(MODELS),
            optional(
                "gate",
                Shape::Boolean,
                "Whether it counts for the run's verdict; true when absent.",
            ),
            optional(
                "timeout_seconds",
                SECONDS,
                "How long a program, an agent, a service or a model with tools may take; the suite's when absent.",
            ).only_for(WITH_TIMEOUT),
            optional(
                "workspace",
                Shape::Text,
                "Of a program, agent or model with tools: the folder beside the suite that each trial gets a copy of; an empty one when absent.",
            ).only_for(WITH_WORKSPACE),
            optional(
                "protocol",
                Shape::Choice(&["text", "jsonl"]),
                "Of a program: whether it is started for each trial (`text`), or stays and answers line by line (`jsonl`); `text` when absent.",
            ).only_for(PROGRAMS),
            optional(
                "tools",
                Shape::Words(&bakeoff_agent::TOOL_NAMES),
                "Of a model: tools that it may call, until it answers without calling one.",
            ).only_for(MODELS).defines(TargetSort::Loop),
            optional(
                "mcp",
                Shape::Tables(&MCP),
                "Of a model: MCP servers whose tools it may call.",
            ).only_for(MODELS).defines(TargetSort::Loop),
            optional(
                "max_turns",
                Shape::Integer { least: 1, most: 10_000 },
                "Of a model with tools: most calls of the model in a trial; 50 when absent.",
            ).only_for(MODELS).defines(TargetSort::Loop),
            optional(
                "tool_timeout_seconds",
                SECONDS,
                "Of a model with tools: how long one call of a tool may take; 120 when absent.",
            ).only_for(LOOPS),
            optional(
                "fetch_hosts",
                Shape::Texts { some: true },
                "Of a model with the tool `http_fetch`: hosts that it may fetch from, such as \"example.com\" or \"127.0.0.1:8080\"; \"*\" is all of them.",
            ).only_for(LOOPS),
            optional(
                "max_context_tokens",
                Shape::Integer { least: 1_000, most: 100_000_000 },
                "Of a model with tools: its window; of a longer conversation less is sent. Everything is sent when absent.",
            ).only_for(LOOPS),
            optional("args", Shape::Texts { some: false }, "Of an agent: more arguments.").only_for(CODING_AGENTS),
            optional(
                "method",
                Shape::Choice(&["POST", "GET", "PUT", "PATCH", "DELETE"]),
                "Of a service: the method of the request; POST when absent.",
            ).only_for(SERVICES),
            optional(
                "headers",
                Shape::TextMap,
                "Of a service: sent with every request; `$NAME` takes an environment variable.",
            ).only_for(SERVICES),
            optional(
                "body",
                Shape::TextOrOpen,
                "Of a service: a template of the JSON that is sent, or a table whose texts are templates; `{ prompt = \"{{ prompt }}\" }` when absent.",
            ).only_for(SERVICES),
            optional(
                "answer",
                Shape::Text,
                "Of a service: where the answer is in the JSON that comes back, as a JSONPath; all of it when absent.",
            ).only_for(SERVICES),
            optional(
                "usage",
                Shape::Table(&USAGE),
                "Of a service: where tokens and cost are in the JSON that comes back.",
            ).only_for(SERVICES),
            optional(
                "connections",
                Shape::Integer { least: 1, most: MAX_CONNECTIONS as i64 },
                "Of a service: most requests in flight; 10 when absent.",
            ).only_for(SERVICES),
        ],
    )
    .with(&REQUEST);

const MCP: Section = Section::new(
    "An MCP server: a program that has tools.",
    &[
        required("name", Shape::Text, "Its tools are called `<name>__<tool>`."),
        required(
            "command",
            Shape::Texts { some: true },
            "The program and its arguments; it runs in the trial's workspace.",
        ),
        optional("tools", Shape::Texts { some: true }, "Only these of its tools; all when absent."),
    ],
);

/// Coding agents that are known by name.
const AGENTS: [&str; 5] = ["claude", "codex", "gemini", "opencode", "cursor-agent"];

const USAGE: Section = Section::new(
    "Where tokens and cost are in the JSON that a service answers with.",
    &[
        optional("input_tokens", Shape::Text, "A JSONPath to the tokens of the prompt."),
        optional("output_tokens", Shape::Text, "A JSONPath to the tokens of the answer."),
        optional("cost_usd", Shape::Text, "A JSONPath to the dollars that it cost."),
    ],
);

/// A step of a chain.
pub(crate) const STEP: Section = Section::new(
    "A step of a chain: a model that is asked, and whose answer later steps see.",
    &[
        optional("role", Shape::Text, "The role of who is asked; see [roles] and [select]."),
        optional(
            "name",
            Shape::Text,
            "What later steps call its answer, as {{ name }}; its role when absent.",
        ),
        optional(
            "model",
            Shape::Text,
            "Who is asked when it has no role: a name under [models] or [sim], or provider/model.",
        ),
        required(
            "prompt",
            Shape::Template,
            "What it is asked: a template over the case's fields and the answers of earlier steps.",
        ),
        optional("system", Shape::Template, "Instructions; a template, too."),
    ],
)
.with(&REQUEST);
