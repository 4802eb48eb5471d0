//! Chat history of cases.

use crate::services::Server;
use crate::support::TestDir;
use serde_json::{Value, json};

const HISTORY: &str = r#"[
    { role = "user", content = "Capital of France?" },
    { role = "assistant", content = "Paris." },
]"#;

fn suite(targets: &str, messages: &str) -> String {
    format!(
        "{targets}\n[[cases.inline]]\nid = \"a\"\ncountry = \"Japan\"\nmessages = {messages}\n\
         [[check]]\nkind = \"contains\"\nvalue = \"o\"\n"
    )
}

#[test]
fn models_receive_the_history_before_the_prompt() {
    let server = Server::start(|_, _| {
        let reply =
            json!({"choices": [{"message": {"content": "Tokyo"}, "finish_reason": "stop"}]});
        (200, "content-type: application/json\r\n", reply.to_string())
    });
    let targets = format!(
        r#"
[models.m]
provider = "openai"
model = "m"
base_url = "{}"
[target_defaults]
model = "m"
system = "Be brief."
prompt = "And of {{{{ country }}}}?"
[[target]]
name = "plain"
[[target]]
name = "tools"
tools = ["read_file"]
"#,
        server.origin()
    );
    let dir = TestDir::with_suite(&suite(&targets, HISTORY));
    let output = dir.run(&["run"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    for request in requests {
        let body: Value = serde_json::from_str(&request.body).unwrap();
        let expected = json!([
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Capital of France?"},
            {"role": "assistant", "content": "Paris."},
            {"role": "user", "content": "And of Japan?"},
        ]);
        assert_eq!(body["messages"], expected);
    }
    for trial in dir.trials() {
        assert_eq!(trial["attempt"]["output"], "Tokyo");
    }
}

#[test]
fn targets_without_the_history_get_a_warning() {
    let targets = r#"
[[target]]
name = "silent"
command = ["cat"]
prompt = "{{ country }} o"
[[target]]
name = "templated"
command = ["cat"]
prompt = "{% for message in messages %}{{ message.content }}{% endfor %}"
[[target]]
name = "chain"
chain = [{ name = "step", model = "sim/echo", prompt = "{{ country }} o" }]
"#;
    let output = TestDir::with_suite(&suite(targets, HISTORY)).run(&["check"]);
    assert_eq!(output.code, 0, "{}", output.transcript());
    let warning = |name: &str| {
        output.stderr.contains(&format!("target `{name}` does not receive `messages`"))
    };
    assert_eq!(["silent", "templated", "chain"].map(warning), [true, false, true]);
}

#[test]
fn invalid_histories_are_reported_at_their_case() {
    let targets = "[[target]]\nname = \"one\"\nmodel = \"sim/echo\"\nprompt = \"{{ country }}\"";
    for messages in [
        "\"Hello\"",
        "[\"Hello\"]",
        "[{ role = \"system\", content = \"x\" }]",
        "[{ role = \"user\" }]",
        "[{ role = \"user\", content = \"x\", name = \"y\" }]",
    ] {
        let output = TestDir::with_suite(&suite(targets, messages)).run(&["check"]);
        assert_eq!(output.code, 2, "{messages}: {}", output.transcript());
        let message = "error: case `messages` must be a list of tables";
        assert!(output.stderr.contains(message), "{messages}: {}", output.stderr);
        assert!(output.stderr.contains("bakeoff.toml:5:1"), "{messages}: {}", output.stderr);
    }
}
