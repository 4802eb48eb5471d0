//! Tests of answers before limits.

use super::*;
use crate::{CannedAnswer, ModelBehaviour, PlannedCall};
use bakeoff_core::{ToolChoice, ToolDefinition};
use serde_json::json;
use std::sync::Arc;

fn request(model: &str, text: &str) -> Request {
    Request { model: model.into(), messages: vec![Message::user(text)], ..Request::default() }
}

fn answer_as(request: &Request, definition: Option<&SimModel>, trial: u32) -> Response {
    let name = request.model.as_str();
    let key = SeedKey::new(1, name, request, trial, 0);
    let context =
        AnswerContext { name, definition, request, key, input_tokens: None, output_tokens: None };
    let behaviours: [Arc<dyn ModelBehaviour>; 1] = [Arc::new(TestVoter)];
    match draft(ModelKind::resolve(name, definition, &behaviours), &context) {
        Draft::Answer(response) => response,
        Draft::Broken(fault) => panic!("{fault:?}"),
    }
}

/// Votes for the second candidate.
#[derive(Debug)]
struct TestVoter;

impl ModelBehaviour for TestVoter {
    fn has_name(&self, name: &str) -> bool {
        name == "voter"
    }

    fn answer(&self, _: &AnswerContext<'_>) -> ModelAnswer {
        ModelAnswer::number(2, "the second")
    }
}

fn answer(request: &Request) -> Response {
    answer_as(request, None, 0)
}

fn weather() -> ToolDefinition {
    let parameters = json!({ "type": "object", "properties": { "city": { "type": "string" } } });
    ToolDefinition { name: "weather".into(), description: String::new(), parameters }
}

#[test]
fn echo_repeats_the_last_user_message() {
    let mut request = request("echo", "first");
    request.messages.push(Message::assistant("said"));
    request.messages.push(Message::user("grüezi"));
    request.messages.push(Message::assistant("prefix"));
    let response = answer(&request);
    assert_eq!(response.text(), "grüezi");
    assert_eq!(response.finish, FinishReason::Stop);
    // 5 + 4 + 6 + 6 characters, and 6.
    assert_eq!((response.usage.input, response.usage.output), (6, 2));
}

#[test]
fn pass_answers_ok_at_the_rate_in_its_name() {
    let request = request("pass-0.7", "question");
    let texts: Vec<String> =
        (0..2000).map(|trial| answer_as(&request, None, trial).text()).collect();
    assert!(texts.iter().all(|text| text == "ok" || text == "no"));
    let ok = texts.iter().filter(|text| *text == "ok").count();
    assert!((1340..=1460).contains(&ok), "{ok}");
}

#[test]
fn tool_calls_the_first_tool_then_returns_its_result() {
    let mut request = request("tool", "Zürich");
    request.tools = vec![weather(), ToolDefinition { name: "other".into(), ..weather() }];
    let response = answer(&request);
    assert_eq!(response.finish, FinishReason::ToolCalls);
    let call = response.tool_calls().next().unwrap().clone();
    assert_eq!((call.name.as_str(), call.arguments), ("weather", json!({ "city": "Zürich" })));

    request.messages.push(response.into_message());
    request.messages.push(Message::ToolResult {
        tool_call_id: call.id,
        name: call.name,
        content: vec![Content::text("sunny")],
        is_error: false,
    });
    assert_eq!(answer(&request).text(), "sunny");
}

#[test]
fn tool_choice_selects_the_called_tool() {
    let mut request = request("tool", "hi");
    request.tools = vec![weather(), ToolDefinition { name: "other".into(), ..weather() }];
    request.tool_choice = Some(ToolChoice::None);
    assert_eq!(answer(&request).tool_calls().count(), 0);
    request.tool_choice = Some(ToolChoice::Tool("other".into()));
    assert_eq!(answer(&request).tool_calls().next().unwrap().name, "other");
    request.model = "anything".into();
    assert_eq!(answer(&request).tool_calls().next().unwrap().name, "other");
    request.tool_choice = Some(ToolChoice::Auto);
    assert_eq!(answer(&request).tool_calls().count(), 0);
}

#[test]
fn schemas_apply_to_generated_answers_and_numbers() {
    let schema = json!({ "properties": { "winner": { "type": "integer" } } });
    let output = Some(OutputFormat::Schema { name: "verdict".into(), schema });
    let prompt = "Which is best?";
    let structured = Request { output: output.clone(), ..request("voter", prompt) };
    assert_eq!(answer(&structured).text(), r#"{"winner":2}"#);
    assert_eq!(answer(&request("voter", prompt)).text(), "the second");
    let other = Request { output, ..request("anything", prompt) };
    assert_eq!(answer(&other).text(), r#"{"winner":1}"#);
}

#[test]
fn other_names_answer_with_their_quality() {
    let expected = format!("[quality {:.2}]", prose::quality("anything"));
    let first = answer(&request("anything", "hi")).text();
    assert!(first.ends_with(&expected), "{first}");
    assert_ne!(first, answer_as(&request("anything", "hi"), None, 1).text());
    let good = SimModel { quality: Some(1.0), ..SimModel::default() };
    let text = answer_as(&request("anything", "hi"), Some(&good), 0).text();
    assert!(text.ends_with("[quality 1.00]"), "{text}");
}

#[test]
fn defined_models_give_right_or_wrong_answers_at_their_rate() {
    let canned = CannedAnswer { when: "capital".into(), answer: "Paris".into(), pass: None };
    let mut model = SimModel { answers: vec![canned], pass: Some(0.25), ..SimModel::default() };
    let request = request("student", "The capital of France?");
    let right = (0..2000)
        .map(|trial| answer_as(&request, Some(&model), trial).text())
        .inspect(|text| assert!(text == "Paris" || text == "I do not know.", "{text}"))
        .filter(|text| text == "Paris")
        .count();
    assert!((440..=560).contains(&right), "{right}");
    model.pass = None;
    assert_eq!(answer_as(&request, Some(&model), 0).text(), "Paris");
}

#[test]
fn long_answers_are_truncated() {
    let mut request = request("echo", "12345678901");
    request.max_tokens = Some(2);
    let response = answer(&request);
    assert_eq!((response.text().as_str(), response.usage.output), ("12345678", 2));
    assert_eq!(response.finish, FinishReason::Length);
    request.max_tokens = Some(3);
    assert_eq!(answer(&request).finish, FinishReason::Stop);
}

#[test]
fn thinking_precedes_the_answer_and_counts_as_output() {
    let mut request = request("echo", "hi");
    request.thinking = Some(Thinking::Effort("low".into()));
    let response = answer(&request);
    assert!(matches!(&response.content[0], Content::Thinking { signature: Some(_), .. }));
    assert_eq!(response.text(), "hi");
    assert!(response.usage.reasoning > 5);
    assert_eq!(response.usage.output, response.usage.reasoning + 1);
    request.max_tokens = Some(3);
    let cut = answer(&request);
    assert_eq!((cut.usage.output, cut.usage.reasoning), (3, 3));
    assert_eq!((cut.text().as_str(), cut.finish), ("", FinishReason::Length));
    for off in [Thinking::Budget(0), Thinking::Effort("none".into())] {
        request.thinking = Some(off);
        assert_eq!(answer(&request).content.len(), 1);
    }
}

#[test]
fn fault_huge_exceeds_ten_megabytes() {
    assert!(answer(&request("fault-huge", "hi")).text().len() > 10_000_000);
}

#[test]
fn planned_calls_precede_the_answer() {
    let call = |tool: &str| PlannedCall { tool: tool.into(), ..PlannedCall::default() };
    let mut model = SimModel { calls: vec![call("a"), call("b")], ..SimModel::default() };
    let mut request = request("worker", "go");
    for tool in ["a", "b"] {
        let response = answer_as(&request, Some(&model), 0);
        assert_eq!(response.finish, FinishReason::ToolCalls);
        let call = response.tool_calls().next().unwrap().clone();
        assert_eq!(call.name, tool);
        request.messages.push(response.into_message());
        request.messages.push(Message::ToolResult {
            tool_call_id: call.id,
            name: call.name,
            content: vec![Content::text(format!("did {tool}"))],
            is_error: false,
        });
    }
    assert_eq!(answer_as(&request, Some(&model), 0).text(), "did b");
    model.default = Some("done".into());
    assert_eq!(answer_as(&request, Some(&model), 0).text(), "done");
    // The next user message restarts the plan.
    request.messages.push(Message::user("again"));
    assert_eq!(answer_as(&request, Some(&model), 0).tool_calls().next().unwrap().name, "a");
}
