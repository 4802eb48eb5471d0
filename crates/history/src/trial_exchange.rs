//! The parts of a stored trace: prompts, tools and judges of a trial.

use bakeoff_core::{Message, Response};
use serde::Serialize;
use serde_json::Value;

/// Exchange of a trial with its target and its judges.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TrialExchange {
    /// Messages to the target in order. Those of a chain include the responses of all steps but the last.
    pub messages: Vec<ExchangeMessage>,
    /// Tool uses with their results.
    pub tools: Vec<ToolCallRecord>,
    /// Calls of judges.
    pub judging: Vec<JudgeRecord>,
}

/// Text of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ExchangeMessage {
    /// Step of a chain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// `system`, `user`, `assistant` or `tool`.
    pub role: String,
    /// Text parts of the message.
    pub text: String,
    /// Files of the message: path, media type and size.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<String>,
}

/// Use of a tool and its result.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ToolCallRecord {
    /// Name of the tool.
    pub name: String,
    /// Arguments of the use.
    pub arguments: Value,
    /// Output of the tool, if it is stored.
    pub output: Option<String>,
    /// Whether the tool failed.
    pub is_error: bool,
}

/// Prompt and reply of a judge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct JudgeRecord {
    /// Id of the check.
    pub check: String,
    /// Name of the judge.
    pub model: String,
    /// Prompt.
    pub messages: Vec<ExchangeMessage>,
    /// Reply.
    pub reply: String,
}

impl TrialExchange {
    /// Collects the parts of the entries of a trace. Unknown entries are ignored.
    pub(crate) fn new(entries: &[Value]) -> TrialExchange {
        let mut exchange = TrialExchange::default();
        for entry in entries {
            match entry.get("payload") {
                Some(event) => exchange.add_agent_event(event),
                None => exchange.add_entry(entry),
            }
        }
        // The response of the last step is the output of the trial.
        exchange.messages.pop_if(|message| message.role == "assistant");
        exchange
    }

    /// Adds a request, a response or a judge's exchange.
    fn add_entry(&mut self, entry: &Value) {
        let step = entry["step"].as_str();
        if let Some(request) = entry.get("request") {
            match request.get("prompt") {
                Some(prompt) => {
                    let mut message = message(step, "user", prompt);
                    message.attachments = attachments(&request["attachments"]);
                    self.messages.push(message);
                }
                None => self.messages.extend(messages(step, &request["messages"])),
            }
        }
        if let (Some(step), Some(response)) = (step, entry.get("response"))
            && let Ok(response) = serde_json::from_value::<Response>(response.clone())
        {
            self.messages.push(message(Some(step), "assistant", &response.text().into()));
        }
        if let Some(judge) = entry.get("judge") {
            self.judging.push(JudgeRecord::new(judge));
        }
    }

    /// Adds an event of an agent.
    fn add_agent_event(&mut self, event: &Value) {
        match event["type"].as_str() {
            Some("message") if event["role"] == "user" => {
                let mut message = message(None, "user", &event["text"]);
                message.attachments = attachments(&event["attachments"]);
                self.messages.push(message);
            }
            Some("tool_use") => self.tools.push(ToolCallRecord {
                name: text(&event["tool_name"]),
                arguments: event["input"].clone(),
                output: None,
                is_error: false,
            }),
            // A result follows its use.
            Some("tool_result") => {
                if let Some(tool) = self.tools.last_mut() {
                    tool.output = Some(text(&event["output"]));
                    tool.is_error = event["is_error"].as_bool().unwrap_or(false);
                }
            }
            Some("judge") => self.judging.push(JudgeRecord::new(event)),
            _ => {}
        }
    }
}

impl JudgeRecord {
    fn new(exchange: &Value) -> JudgeRecord {
        JudgeRecord {
            check: text(&exchange["check"]),
            model: text(&exchange["model"]),
            messages: messages(None, &exchange["messages"]),
            reply: text(&exchange["reply"]),
        }
    }
}

fn message(step: Option<&str>, role: &str, content: &Value) -> ExchangeMessage {
    ExchangeMessage {
        step: step.map(str::to_owned),
        role: role.to_owned(),
        text: text(content),
        attachments: Vec::new(),
    }
}

fn messages(step: Option<&str>, list: &Value) -> Vec<ExchangeMessage> {
    let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter()
        .map(|value| {
            let content = serde_json::from_value::<Message>(value.clone())
                .map_or_else(|_| value["content"].clone(), |message| message.text().into());
            let message = message(step, value["role"].as_str().unwrap_or_default(), &content);
            ExchangeMessage { attachments: attachments(&value["content"]), ..message }
        })
        .collect()
}

/// Describes the attachments among the parts of a message.
fn attachments(parts: &Value) -> Vec<String> {
    let parts = parts.as_array().map(Vec::as_slice).unwrap_or_default();
    let values = parts.iter().map(|part| part.get("value").unwrap_or(part));
    values
        .filter(|part| part["type"] == "attachment")
        .map(|part| {
            let (path, kind) = (text(&part["path"]), text(&part["media_type"]));
            format!("{path} ({kind}, {} bytes)", part["bytes"])
        })
        .collect()
}

/// Returns a text, or other values as JSON.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn user(text: &str) -> Value {
        json!({"role": "user", "content": [{"type": "text", "text": text}]})
    }

    fn texts(messages: &[ExchangeMessage]) -> Vec<(Option<&str>, &str, &str)> {
        messages.iter().map(|it| (it.step.as_deref(), it.role.as_str(), it.text.as_str())).collect()
    }

    #[test]
    fn steps_of_a_chain_are_in_order_without_the_last_response() {
        let response = |text: &str| json!({"content": [{"type": "text", "text": text}], "finish": "stop", "usage": {"input": 1, "output": 1}});
        let exchange = TrialExchange::new(&[
            json!({"step": "draft", "request": {"messages": [user("write")]}}),
            json!({"step": "draft", "response": response("text")}),
            json!({"step": "polish", "request": {"messages": [user("polish text")]}}),
            json!({"step": "polish", "response": response("Text")}),
        ]);
        assert_eq!(
            texts(&exchange.messages),
            [
                (Some("draft"), "user", "write"),
                (Some("draft"), "assistant", "text"),
                (Some("polish"), "user", "polish text"),
            ]
        );
    }

    #[test]
    fn tools_of_an_agent_have_their_results() {
        let event = |payload: Value| json!({"seq": 0, "payload": payload});
        let exchange = TrialExchange::new(&[
            event(json!({"type": "message", "role": "user", "text": "look"})),
            event(json!({"type": "tool_use", "tool_name": "ls", "input": {"path": "."}})),
            event(json!({"type": "tool_result", "output": "denied", "is_error": true})),
            event(json!({"type": "tool_use", "tool_name": "cat", "input": null})),
            event(json!({"type": "message", "role": "assistant", "text": "done"})),
        ]);
        assert_eq!(texts(&exchange.messages), [(None, "user", "look")]);
        let [ls, cat] = exchange.tools.as_slice() else { panic!("{:?}", exchange.tools) };
        assert_eq!((ls.output.as_deref(), ls.is_error), (Some("denied"), true));
        assert_eq!((cat.name.as_str(), &cat.output), ("cat", &None));
    }

    #[test]
    fn judges_of_models_and_agents_are_found() {
        let judge =
            json!({"check": "rubric", "model": "j", "messages": [user("rate")], "reply": "7"});
        let mut payload = judge.clone();
        payload["type"] = "judge".into();
        for entry in [json!({"judge": judge}), json!({"seq": 1, "payload": payload})] {
            let exchange = TrialExchange::new(&[entry, json!({"unknown": 1})]);
            let [judge] = exchange.judging.as_slice() else { panic!("{exchange:?}") };
            assert_eq!((judge.check.as_str(), judge.reply.as_str()), ("rubric", "7"));
            assert_eq!(texts(&judge.messages), [(None, "user", "rate")]);
        }
    }
}
