//! Settings of a request: every format sends those that its table does not list as unsupported.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use bakeoff_core::{Message, OutputFormat, Request, Thinking, ToolChoice, ToolDefinition};
use bakeoff_llm::{Model, ModelConfig, Setting, Wire};
use serde_json::json;

/// Returns a request with one setting.
fn with(setting: Setting) -> Request {
    let schema = json!({"type": "object"});
    let mut request = without();
    match setting {
        Setting::Tools => {
            request.tools = vec![ToolDefinition {
                name: "weather".into(),
                description: "Weather of a city".into(),
                parameters: schema,
            }];
        }
        Setting::ToolChoice => request.tool_choice = Some(ToolChoice::Required),
        Setting::MaxTokens => request.max_tokens = Some(77),
        Setting::Temperature => request.temperature = Some(0.5),
        Setting::TopP => request.top_p = Some(0.9),
        Setting::Stop => request.stop = vec!["END".into()],
        Setting::Seed => request.seed = Some(7),
        Setting::Thinking => request.thinking = Some(Thinking::Effort("high".into())),
        Setting::ThinkingTokens => request.thinking = Some(Thinking::Budget(2000)),
        Setting::Json => request.output = Some(OutputFormat::Json),
        Setting::JsonSchema => {
            request.output = Some(OutputFormat::Schema { name: "place".into(), schema });
        }
        other => panic!("no request with {other}"),
    }
    request
}

fn without() -> Request {
    Request { model: "m".into(), messages: vec![Message::user("hi")], ..Request::default() }
}

#[test]
fn body_changes_if_and_only_if_the_format_supports_the_setting() {
    for wire in Wire::ALL {
        for setting in Setting::ALL {
            let request = with(setting);
            let is_sent = wire.encode(&request) != wire.encode(&without());
            assert_eq!(is_sent, wire.supports(setting), "{setting} in {wire}");
            let rows = wire.unsupported_settings(&request);
            let listed: Vec<Setting> = rows.iter().map(|row| row.setting).collect();
            let expected = if is_sent { vec![] } else { vec![setting] };
            assert_eq!(listed, expected, "{setting} in {wire}");
            assert!(wire.unsupported_settings(&without()).is_empty());
        }
    }
}

/// Fails to compile when a request has a new field, which needs a setting or a reason why it has none.
#[test]
fn every_field_of_a_request_has_a_setting() {
    let Request {
        // Sent in every format.
        model: _,
        messages: _,
        extra: _,
        // Selects the form of the response; Gemini sends it in the path.
        stream: _,
        tools: _,
        tool_choice: _,
        max_tokens: _,
        temperature: _,
        top_p: _,
        stop: _,
        seed: _,
        thinking: _,
        output: _,
    } = without();
    for setting in Setting::ALL {
        let set: Vec<Setting> =
            Setting::ALL.into_iter().filter(|other| other.is_set(&with(setting))).collect();
        assert_eq!(set, [setting]);
        assert!(!setting.is_set(&without()), "{setting}");
    }
}

#[test]
fn extra_fields_are_sent_in_every_format() {
    let mut request = without();
    request.extra = json!({"service_tier": "flex"}).as_object().unwrap().clone();
    for wire in Wire::ALL {
        let body: serde_json::Value = serde_json::from_slice(&wire.encode(&request)).unwrap();
        assert_eq!(body["service_tier"], "flex", "{wire}");
    }
}

#[test]
fn unsupported_settings_of_a_model_follow_its_format() {
    let settings = |provider: &str, request: &Request| {
        let config = ModelConfig::named(provider, "m").base_url("http://127.0.0.1:1/v1");
        let model = Model::resolve(&config, &|_| None).unwrap();
        let (wire, rows) = model.unsupported_settings(request).unwrap();
        (wire, rows.iter().map(|row| row.setting).collect::<Vec<_>>())
    };
    let request = Request { seed: Some(1), ..with(Setting::Stop) };
    assert_eq!(
        settings("openai-responses", &request),
        (Wire::OpenAiResponses, vec![Setting::Stop, Setting::Seed])
    );
    assert_eq!(settings("anthropic", &request), (Wire::Anthropic, vec![Setting::Seed]));
    assert_eq!(settings("groq", &request), (Wire::OpenAiChat, vec![]));
    let simulated = Model::from_env("sim/echo").unwrap();
    assert!(simulated.unsupported_settings(&request).is_none());
}
