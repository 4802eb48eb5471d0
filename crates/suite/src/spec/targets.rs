//! Keys of `[[target]]` and `[[target.chain]]`.

use super::{
    Field, MAX_CONNECTIONS, SECONDS, Section, ValueType, choice_words, optional, required,
};
use crate::programs::PROTOCOL_CHOICES;
use bakeoff_agent::CodingAgent;

/// Type of a target, derived from its keys. The order is that of error messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TargetType {
    Chain,
    Program,
    Agent,
    Service,
    Model,
    /// Model with tools.
    ToolModel,
}

const MODELS: &[TargetType] = &[TargetType::Model, TargetType::ToolModel];
const TOOL_MODELS: &[TargetType] = &[TargetType::ToolModel];
const PROGRAMS: &[TargetType] = &[TargetType::Program];
const CODING_AGENTS: &[TargetType] = &[TargetType::Agent];
const SERVICES: &[TargetType] = &[TargetType::Service];
const PROGRAMS_AND_SERVICES: &[TargetType] = &[TargetType::Program, TargetType::Service];
/// Targets that make their calls themselves.
const SELF_CALLING: &[TargetType] = &[TargetType::Program, TargetType::Agent, TargetType::Service];
const WITH_WORKSPACE: &[TargetType] =
    &[TargetType::Program, TargetType::Agent, TargetType::ToolModel];
const WITH_TIMEOUT: &[TargetType] =
    &[TargetType::Program, TargetType::Agent, TargetType::Service, TargetType::ToolModel];

/// Settings of a model request: those that a model may have too, and the format of the output.
const REQUEST: [Field; 9] = [
    optional("temperature", ValueType::Number { min: 0.0, max: 2.0 }, "Sampling temperature")
        .only_for(MODELS),
    optional(
        "top_p",
        ValueType::Number { min: 0.0, max: 1.0 },
        "Probability mass of nucleus sampling",
    )
    .only_for(MODELS),
    optional(
        "max_tokens",
        ValueType::Integer { min: 1, max: 100_000_000 },
        "Maximum number of completion tokens",
    )
    .only_for(MODELS),
    optional("stop", ValueType::TextList { non_empty: false }, "Stop sequences").only_for(MODELS),
    optional(
        "thinking",
        ValueType::Text,
        "Reasoning effort as named by the provider: low, medium, high, …",
    )
    .only_for(MODELS),
    optional(
        "thinking_tokens",
        ValueType::Integer { min: 0, max: 100_000_000 },
        "Maximum number of reasoning tokens; 0 disables reasoning",
    )
    .only_for(MODELS),
    optional(
        "extra",
        ValueType::OpenTable,
        "Additional fields of the provider's request, sent unchanged",
    )
    .only_for(MODELS),
    optional("json", ValueType::Boolean, "Require a JSON object as output [default: false]")
        .only_for(MODELS),
    optional("json_schema", ValueType::OpenTable, "JSON Schema of the output").only_for(MODELS),
];

const REQUEST_FIELDS: &[Field] = &REQUEST;

/// Settings that a model may have for all of its requests.
pub(super) const MODEL_SETTINGS: &[Field] = REQUEST_FIELDS.split_at(7).0;

pub(crate) const TARGET: Section = Section::new(
        "System under test: a model with a prompt, a chain of models, a program, a coding agent or an HTTP service",
        &[
            required("name", ValueType::Text, "Name in results"),
            optional(
                "model",
                ValueType::Text,
                "Model: a name under [models] or [sim], provider/model, or role/name; with `agent`, a model name of that agent",
            ).implies(TargetType::Model),
            optional(
                "command",
                ValueType::TextList { non_empty: true },
                "Program and its arguments; reads the prompt from standard input or from the argument `{prompt}`, writes its output to standard output",
            ).implies(TargetType::Program),
            optional("agent", ValueType::Choice(&AGENT_NAMES), "Installed coding agent").implies(TargetType::Agent),
            optional("url", ValueType::Text, "URL of an HTTP service").implies(TargetType::Service),
            // Required for all targets but chains, which the reader of targets checks.
            optional(
                "prompt",
                ValueType::Template,
                "Prompt template; steps of a chain have their own",
            ),
            optional(
                "chain",
                ValueType::Tables(&STEP),
                "Models called in sequence; the output of the last one is the output of the target",
            ).implies(TargetType::Chain),
            optional(
                "roles",
                ValueType::TextList { non_empty: true },
                "Roles whose models programs find in the environment as `BAKEOFF_MODEL_<ROLE>`, and the body of services as {{ roles.NAME }}",
            ).only_for(PROGRAMS_AND_SERVICES),
            optional("system", ValueType::Template, "System prompt of a model").only_for(MODELS),
            optional(
                "gate",
                ValueType::Boolean,
                "Whether the target counts for the verdict of the run [default: true]",
            ),
            optional(
                "timeout_seconds",
                SECONDS,
                "Time limit in seconds of a program, agent, service or model with tools [default: `timeout_seconds` of the suite]",
            ).only_for(WITH_TIMEOUT),
            optional(
                "priced_as",
                ValueType::Text,
                "For programs, agents and services: model whose prices apply to reported tokens: a name under [models], or provider/model [default: the model of the only role]",
            ).only_for(SELF_CALLING),
            optional(
                "trial_cost_usd",
                ValueType::Number { min: 0.0, max: 1e6 },
                "For programs, agents and services: cost of a trial in dollars, if none is reported; 0 for programs that cost nothing",
            ).only_for(SELF_CALLING),
            optional(
                "workspace",
                ValueType::Text,
                "For programs, agents and models with tools: folder, relative to the suite file, that is copied for each trial [default: an empty folder]",
            ).only_for(WITH_WORKSPACE),
            optional(
                "protocol",
                ValueType::Choice(&PROTOCOL_WORDS),
                "For programs: `text` starts a process per trial, `jsonl` keeps one process that exchanges JSON lines [default: text]",
            ).only_for(PROGRAMS),
            optional(
                "tools",
                ValueType::ChoiceList(&bakeoff_agent::TOOL_NAMES),
                "For models: tools that the model may call until it responds without a tool call",
            ).only_for(MODELS).implies(TargetType::ToolModel),
            optional(
                "mcp",
                ValueType::Tables(&MCP),
                "For models: MCP servers whose tools the model may call",
            ).only_for(MODELS).implies(TargetType::ToolModel),
            optional(
                "max_turns",
                ValueType::Integer { min: 1, max: 10_000 },
                "For models with tools: maximum number of model calls in a trial [default: 50]",
            ).only_for(MODELS).implies(TargetType::ToolModel),
            optional(
                "tool_timeout_seconds",
                SECONDS,
                "For models with tools: time limit in seconds of a tool call [default: 120]",
            ).only_for(TOOL_MODELS),
            optional(
                "fetch_hosts",
                ValueType::TextList { non_empty: true },
                "For the tool `http_fetch`: allowed hosts, such as \"example.com\" or \"127.0.0.1:8080\"; \"*\" allows all",
            ).only_for(TOOL_MODELS),
            optional(
                "max_context_tokens",
                ValueType::Integer { min: 1_000, max: 100_000_000 },
                "For models with tools: context window in tokens; longer conversations are shortened [default: unlimited]",
            ).only_for(TOOL_MODELS),
            optional("args", ValueType::TextList { non_empty: false }, "For agents: additional arguments").only_for(CODING_AGENTS),
            optional(
                "method",
                ValueType::Choice(&["POST", "GET", "PUT", "PATCH", "DELETE"]),
                "For services: HTTP method [default: POST]",
            ).only_for(SERVICES),
            optional(
                "headers",
                ValueType::TextMap,
                "For services: headers of every request; `$NAME` is replaced with an environment variable",
            ).only_for(SERVICES),
            optional(
                "body",
                ValueType::TextOrTable,
                "For services: JSON template of the request body, or a table with template strings [default: { prompt = \"{{ prompt }}\" }]",
            ).only_for(SERVICES),
            optional(
                "answer",
                ValueType::Text,
                "For services: JSONPath of the output in the response [default: the whole response]",
            ).only_for(SERVICES),
            optional(
                "usage",
                ValueType::Table(&USAGE),
                "For services: JSONPaths of token counts and cost in the response",
            ).only_for(SERVICES),
            optional(
                "connections",
                ValueType::Integer { min: 1, max: MAX_CONNECTIONS as i64 },
                "For services: maximum number of requests in flight [default: 10]",
            ).only_for(SERVICES),
        ],
    )
    .with(REQUEST_FIELDS);

pub(crate) const TARGET_DEFAULTS: Section = TARGET.without("name", "Defaults of all targets");

/// Keys of `[matrix]`.
pub(super) const MATRIX: Section = Section::new(
    "Targets for all combinations of prompts and models; their other keys are under [target_defaults]",
    &[
        optional(
            "prompts",
            ValueType::TextList { non_empty: true },
            "Files with prompt templates, relative to the suite file [default: `prompt` of [target_defaults]]",
        ),
        optional(
            "models",
            ValueType::TextList { non_empty: true },
            "Models: names under [models] or [sim], provider/model, or role/name [default: `model` of [target_defaults]]",
        ),
    ],
);

const MCP: Section = Section::new(
    "MCP server: a program, or a server over HTTP, that provides tools",
    &[
        required("name", ValueType::Text, "Server name; tools are named `<name>__<tool>`"),
        optional(
            "command",
            ValueType::TextList { non_empty: true },
            "Program and its arguments; runs in the workspace of the trial",
        ),
        optional(
            "env",
            ValueType::TextMap,
            "For `command`: additional environment variables; `$NAME` is replaced with an environment variable",
        ),
        optional(
            "url",
            ValueType::Text,
            "URL of a server over streamable HTTP, instead of `command`",
        ),
        optional(
            "headers",
            ValueType::TextMap,
            "For `url`: headers of every request; `$NAME` is replaced with an environment variable",
        ),
        optional(
            "tools",
            ValueType::TextList { non_empty: true },
            "Names of the tools to use [default: all]",
        ),
    ],
);

/// Names of all coding agents.
const AGENT_NAMES: [&str; CodingAgent::ALL.len()] = {
    let mut names = [""; CodingAgent::ALL.len()];
    let mut index = 0;
    while index < names.len() {
        names[index] = CodingAgent::ALL[index].name();
        index += 1;
    }
    names
};

const PROTOCOL_WORDS: [&str; 2] = choice_words(&PROTOCOL_CHOICES);

const USAGE: Section = Section::new(
    "JSONPaths of token counts and cost in the response",
    &[
        optional("input_tokens", ValueType::Text, "JSONPath of the number of prompt tokens"),
        optional("output_tokens", ValueType::Text, "JSONPath of the number of completion tokens"),
        optional("cost_usd", ValueType::Text, "JSONPath of the cost in dollars"),
    ],
);

/// Keys of a chain step.
pub(crate) const STEP: Section = Section::new(
    "Chain step: a model call whose output is available to later steps",
    &[
        optional("role", ValueType::Text, "Role of the model; see [roles] and [select]"),
        optional(
            "name",
            ValueType::Text,
            "Name of the output in templates of later steps, as {{ name }} [default: the role]",
        ),
        optional(
            "model",
            ValueType::Text,
            "Model of a step without a role: a name under [models] or [sim], or provider/model",
        ),
        required(
            "prompt",
            ValueType::Template,
            "Prompt template with case fields and outputs of earlier steps",
        ),
        optional("system", ValueType::Template, "System prompt template"),
    ],
)
.with(REQUEST_FIELDS);
