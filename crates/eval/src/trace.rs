//! `trace.jsonl`: the exchange between a trial and its target.

use bakeoff_agent::ToolExchange;
use bakeoff_core::{Attempt, ToolUse, TrialResult};
use bakeoff_suite::Artifacts;
use serde_json::{Map, Value, json};

/// Characters kept of an output.
const MAX_OUTPUT_CHARS: usize = 10_000;

/// The exchange between a trial and its target.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    /// Exchanges before the last one: the steps of a chain.
    pub(crate) earlier: Vec<Value>,
    pub(crate) request: Option<Value>,
    pub(crate) response: Option<Value>,
    /// Ids and results of the tool uses of the attempt.
    pub(crate) tools: Vec<ToolExchange>,
    /// Fields of the responses of a model with tools that its messages do not represent, by turn.
    pub(crate) extra: Vec<(u32, Map<String, Value>)>,
}

impl Trace {
    /// Creates a trace of a request and a shortened response; empty when no artifacts are written.
    pub(crate) fn new(artifacts: Artifacts, request: Value, attempt: &Attempt) -> Trace {
        if artifacts == Artifacts::None {
            return Trace::default();
        }
        let has_response = attempt.error.is_none() || !attempt.output.is_empty();
        let response = has_response.then(|| shortened(attempt));
        Trace { request: Some(request), response, ..Trace::default() }
    }

    /// Returns the contents of the file. `judging` has the prompts and replies of judges.
    pub(crate) fn to_lines(&self, result: &TrialResult, judging: Vec<Value>) -> Vec<u8> {
        let mut lines = Vec::new();
        let is_agent = result.attempt.transcript.is_some();
        let named = |part: &Option<Value>, name: &str| {
            part.as_ref().filter(|_| !is_agent).map(|part| json!({ name: part }))
        };
        let last = [
            named(&self.request, "request"),
            named(&self.response, "response"),
            result.attempt.error.as_ref().map(|error| json!({ "error": error })),
        ];
        for part in self.earlier.iter().cloned().chain(last.into_iter().flatten()) {
            push_line(&mut lines, &part);
        }
        if is_agent {
            let mut events = agent_events(self.request.as_ref(), &result.attempt, &self.tools);
            let judged = |mut exchange: Value| {
                exchange["type"] = "judge".into();
                exchange
            };
            events.extend(self.extra.iter().map(
                |(turn, extra)| json!({"type": "response_extra", "turn": turn, "extra": extra}),
            ));
            events.extend(judging.into_iter().map(judged));
            for (seq, payload) in events.iter().enumerate() {
                push_line(&mut lines, &json!({ "seq": seq, "payload": payload }));
            }
        } else {
            judging
                .iter()
                .for_each(|exchange| push_line(&mut lines, &json!({ "judge": exchange })));
        }
        lines
    }
}

fn push_line(lines: &mut Vec<u8>, value: &Value) {
    lines.extend_from_slice(value.to_string().as_bytes());
    lines.push(b'\n');
}

/// Returns the response of a target, cut to [`MAX_OUTPUT_CHARS`].
fn shortened(attempt: &Attempt) -> Value {
    let output: String = attempt.output.chars().take(MAX_OUTPUT_CHARS).collect();
    let mut response = json!({ "output": output });
    if output.len() < attempt.output.len() {
        response["output_bytes"] = attempt.output.len().into();
    }
    if let Some(code) = attempt.exit_code {
        response["exit_code"] = code.into();
    }
    if let Some(usage) = attempt.usage {
        response["usage"] = json!(usage);
    }
    response
}

/// Returns the prompt, tool uses, their results and the answer of an agent, in FastSkill's format.
fn agent_events(request: Option<&Value>, attempt: &Attempt, tools: &[ToolExchange]) -> Vec<Value> {
    let prompt = request.map(|request| {
        let mut event = json!({"type": "message", "role": "user", "text": request["prompt"]});
        if let Some(attachments) = request.get("attachments") {
            event["attachments"] = attachments.clone();
        }
        event
    });
    let none = ToolExchange::default();
    let exchanges = tools.iter().chain(std::iter::repeat(&none));
    let tools = attempt.tool_uses.iter().zip(exchanges).enumerate();
    let tools = tools.flat_map(|(index, (tool, exchange))| tool_events(index, tool, exchange));
    let answer = json!({"type": "message", "role": "assistant", "text": attempt.output});
    let usage = attempt.usage.map(|usage| json!({"type": "token_usage_line", "usage": usage}));
    prompt.into_iter().chain(tools).chain([answer]).chain(usage).collect()
}

/// Returns the use of a tool and its result, if there is one.
fn tool_events(index: usize, tool: &ToolUse, exchange: &ToolExchange) -> Vec<Value> {
    let id = match exchange.id.as_str() {
        "" => format!("call-{}", index + 1),
        id => id.to_owned(),
    };
    let mut events = vec![json!({
        "type": "tool_use", "call_id": id, "tool_name": tool.name, "input": tool.arguments,
    })];
    if let Some(result) = &exchange.result {
        let mut event = json!({
            "type": "tool_result", "call_id": id, "output": result.output, "is_error": result.is_error,
        });
        if result.dropped_bytes > 0 {
            event["dropped_bytes"] = result.dropped_bytes.into();
        }
        events.push(event);
    }
    events
}
