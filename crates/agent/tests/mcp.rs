//! Tools of MCP servers that behave and of those that do not.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use bakeoff_agent::{
    Identity, McpError, McpServer, McpServers, Tool, ToolContext, ToolOutput, Workbench,
};
use bakeoff_core::{Content, ImageSource};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A server whose tools and behaviour are given as JSON in its first argument.
const SERVER: &str = r#"
import json, os, sys, time

plan = json.loads(sys.argv[1])

def say(message):
    print(json.dumps(message), flush=True)

def answer(id, result):
    say({"jsonrpc": "2.0", "id": id, "result": result})

if "garbage" in plan:
    print("Welcome to my server!\n{\"half\": \n\x00\xff[1, 2]", flush=True)
if "complains" in plan:
    print("x" * 100000, file=sys.stderr)
    print(plan["complains"], file=sys.stderr, flush=True)
for line in sys.stdin:
    request = json.loads(line)
    id, method = request.get("id"), request.get("method")
    if plan.get("silent") == method:
        continue
    if plan.get("dies") == method:
        print("out of cheese", file=sys.stderr, flush=True)
        os._exit(3)
    if method == "initialize":
        answer(id, {
            "protocolVersion": request["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "fake", "version": "1"},
        })
    elif method == "tools/list":
        pages = plan.get("pages") or [plan["tools"]]
        at = int(request["params"].get("cursor") or 0)
        more = {"nextCursor": str(at + 1)} if at + 1 < len(pages) else {}
        answer(id, {"tools": pages[at], **more})
    elif method == "tools/call":
        given = request["params"]
        if "refuses" in plan:
            say({"jsonrpc": "2.0", "id": id, "error": {"code": -32602, "message": plan["refuses"]}})
        elif given["name"] == "where":
            answer(id, {"content": [{"type": "text", "text": json.dumps({
                "folder": os.getcwd(),
                "trial": os.environ.get("BAKEOFF_TRIAL_ID"),
                "process": os.getpid(),
            })}]})
        else:
            answer(id, plan.get("result") or {
                "content": [{"type": "text", "text": json.dumps(given.get("arguments"))}]
            })
"#;

fn tool(name: &str) -> Value {
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
    json!({"name": name, "description": "Says it again.", "inputSchema": schema})
}

fn server(plan: Value) -> McpServer {
    let command = ["python3", "-c", SERVER, &plan.to_string()].map(Into::into).to_vec();
    McpServer { name: "fake".to_owned(), command, tools: None }
}

/// A folder with a workbench in it.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        Place { folder: tempfile::tempdir().unwrap() }
    }

    async fn start(&self, servers: &[McpServer]) -> Result<McpServers, McpError> {
        let bench = Workbench::in_folder(self.folder.path());
        McpServers::start(servers, &bench, Duration::from_secs(30)).await
    }

    async fn wrong(&self, server: McpServer) -> String {
        self.start(&[server]).await.unwrap_err().to_string()
    }
}

fn names(servers: &McpServers) -> Vec<&str> {
    servers.tools().iter().map(|tool| tool.definition().name.as_str()).collect()
}

async fn call(tool: &Arc<dyn Tool>, arguments: Value) -> Result<ToolOutput, String> {
    let context = ToolContext::unattended(CancellationToken::new());
    tool.execute(arguments, context).await.map_err(|error| error.to_string())
}

async fn said(tool: &Arc<dyn Tool>, arguments: Value) -> Result<String, String> {
    call(tool, arguments).await.map(|output| Content::join_text(&output.content))
}

#[tokio::test]
async fn tools_are_offered_under_the_servers_name_and_called() {
    let place = Place::new();
    let servers = [
        server(json!({"pages": [[tool("echo")], [tool("other.tool"), tool("where")]]})),
        McpServer {
            name: "second".to_owned(),
            tools: Some(vec!["b".to_owned()]),
            ..server(json!({"tools": [tool("a"), tool("b")]}))
        },
    ];
    let servers = place.start(&servers).await.unwrap();
    assert_eq!(names(&servers), ["fake__echo", "fake__other_tool", "fake__where", "second__b"]);
    let definition = servers.tools()[0].definition();
    assert_eq!(definition.description, "Says it again.");
    assert_eq!(definition.parameters["properties"]["text"]["type"], "string");
    let text = json!({"text": "hé\n"});
    let answer = said(&servers.tools()[0], text.clone()).await.unwrap();
    assert_eq!(serde_json::from_str::<Value>(&answer).unwrap(), text);
    servers.close().await;
}

#[tokio::test]
async fn a_server_works_in_the_workspace_and_knows_whose_it_is() {
    let place = Place::new();
    let identity = Identity {
        run: format!("mcp-{}", std::process::id()),
        trial: Some("t/c/1".to_owned()),
        part: None,
    };
    let (started, mut groups) = tokio::sync::mpsc::channel(1);
    let bench = Workbench {
        identity: Some(identity),
        started: Some(started),
        ..Workbench::in_folder(place.folder.path())
    };
    let server = server(json!({"tools": [tool("where")]}));
    let patience = Duration::from_secs(30);
    let servers = McpServers::start(&[server], &bench, patience).await.unwrap();
    let answer = said(&servers.tools()[0], json!({})).await.unwrap();
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let folder = place.folder.path().canonicalize().unwrap();
    assert_eq!(answer["folder"], folder.to_str().unwrap());
    assert_eq!(answer["trial"], "t/c/1");
    assert_eq!(answer["process"], groups.recv().await.unwrap().id);
}

/// Waits until a process is gone, or dead and waiting to be buried.
async fn gone(id: i64) {
    let lives = || {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    };
    let waiting = async {
        while lives() {
            tokio::task::yield_now().await;
        }
    };
    let most = std::time::Duration::from_secs(60);
    assert!(tokio::time::timeout(most, waiting).await.is_ok(), "the process lives on");
}

#[tokio::test]
async fn servers_are_killed_when_the_handle_is_dropped_and_their_tools_say_so() {
    let place = Place::new();
    let servers = place.start(&[server(json!({"tools": [tool("where")]}))]).await.unwrap();
    let tool = Arc::clone(&servers.tools()[0]);
    let answer: Value = serde_json::from_str(&said(&tool, json!({})).await.unwrap()).unwrap();
    drop(servers);
    gone(answer["process"].as_i64().unwrap()).await;
    let error = said(&tool, json!({})).await.unwrap_err();
    assert_eq!(error, "the MCP server `fake` has ended (it was closed)");
}

#[tokio::test]
async fn results_are_texts_and_pictures_and_errors() {
    let place = Place::new();
    let with = |result: Value| server(json!({"tools": [tool("t")], "result": result}));
    let results = [
        json!({"content": [
            {"type": "text", "text": "look"},
            {"type": "image", "data": "aGk=", "mimeType": "image/png"},
            {"type": "resource", "resource": {"uri": "a://b", "text": "inside"}},
            {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
        ]}),
        json!({"content": [], "structuredContent": {"a": 1}}),
        json!({"content": []}),
        json!({"content": [{"type": "text", "text": "no such city"}], "isError": true}),
        json!({"content": [{"type": "text", "text": "ü".repeat(40_000)}]}),
    ];
    let mut outputs = Vec::new();
    for result in results {
        let servers = place.start(&[with(result)]).await.unwrap();
        outputs.push(call(&servers.tools()[0], json!({})).await);
    }
    let image = ImageSource::Base64 { media_type: "image/png".to_owned(), data: "aGk=".to_owned() };
    let content = vec![
        Content::text("look"),
        Content::Image { source: image },
        Content::text("inside"),
        Content::text("[a sound is left out]"),
    ];
    assert_eq!(outputs[0], Ok(ToolOutput { content }));
    assert_eq!(outputs[1], Ok("{\"a\":1}".into()));
    assert_eq!(outputs[2], Ok("[the tool returned nothing]".into()));
    assert_eq!(outputs[3], Err("no such city".to_owned()));
    let long = outputs.remove(4).unwrap();
    let long = Content::join_text(&long.content);
    assert!(long.ends_with("ü\n[14464 more bytes are not shown]"), "{}", long.len());
}

#[tokio::test]
async fn what_a_server_refuses_is_told_in_its_own_words() {
    let place = Place::new();
    let plan = json!({"tools": [tool("t")], "refuses": "text must not be empty"});
    let servers = place.start(&[server(plan)]).await.unwrap();
    let error = said(&servers.tools()[0], json!({})).await.unwrap_err();
    assert_eq!(error, "text must not be empty");
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up() {
    let place = Place::new();
    for method in ["initialize", "tools/list"] {
        let plan = json!({"tools": [], "silent": method, "complains": "still thinking"});
        let bench = Workbench::in_folder(place.folder.path());
        let patience = Duration::from_millis(700);
        let error = McpServers::start(&[server(plan)], &bench, patience).await.unwrap_err();
        assert!(matches!(error, McpError::TimedOut { .. }), "{error}");
        let text = error.to_string();
        let begin = "the MCP server `fake` did not list its tools within 0.7 s";
        assert!(text.starts_with(begin), "{text}");
        assert!(text.len() < 5000, "{}", text.len());
    }
}

#[tokio::test]
async fn a_server_that_is_of_no_use_is_told_as_such() {
    let place = Place::new();
    let error = place.wrong(server(json!({"tools": []}))).await;
    assert_eq!(error, "the MCP server `fake` has no tools");
}

#[tokio::test]
async fn a_call_that_is_never_answered_can_be_cancelled() {
    let place = Place::new();
    let plan = json!({"tools": [tool("t")], "silent": "tools/call"});
    let servers = place.start(&[server(plan)]).await.unwrap();
    let cancel = CancellationToken::new();
    let work = servers.tools()[0].execute(json!({}), ToolContext::unattended(cancel.clone()));
    let stop = async { cancel.cancel() };
    let (output, ()) = tokio::join!(work, stop);
    assert_eq!(output.unwrap_err().to_string(), "cancelled");
}

#[tokio::test]
async fn garbage_between_the_messages_is_passed_over() {
    let place = Place::new();
    let plan = json!({"tools": [tool("t")], "garbage": true});
    let servers = place.start(&[server(plan)]).await.unwrap();
    assert_eq!(said(&servers.tools()[0], json!({"text": "x"})).await.unwrap(), "{\"text\": \"x\"}");
}

#[tokio::test]
async fn a_server_that_dies_says_how_wherever_it_is() {
    let place = Place::new();
    let ended = "the MCP server `fake` has ended (exit code 3): out of cheese\n";
    for method in ["initialize", "tools/list"] {
        let error = place.wrong(server(json!({"tools": [], "dies": method}))).await;
        assert_eq!(error.trim_end(), ended.trim_end());
    }
    let plan = json!({"tools": [tool("t")], "dies": "tools/call"});
    let servers = place.start(&[server(plan)]).await.unwrap();
    // Those that come later are told the same.
    for _ in 0..2 {
        let error = said(&servers.tools()[0], json!({})).await.unwrap_err();
        assert_eq!(error.trim_end(), ended.trim_end());
    }
}

#[tokio::test]
async fn of_tools_with_one_name_the_first_is_offered() {
    let place = Place::new();
    let second = json!({"name": "t", "description": "Another.", "inputSchema": {}});
    let servers =
        place.start(&[server(json!({"tools": [tool("t"), second, tool("u")]}))]).await.unwrap();
    assert_eq!(names(&servers), ["fake__t", "fake__u"]);
    assert_eq!(servers.tools()[0].definition().description, "Says it again.");
}

#[tokio::test]
async fn a_broken_schema_is_an_error_that_names_the_tool_unless_it_is_not_wanted() {
    let place = Place::new();
    let bad = json!({"name": "bad", "inputSchema": {"type": "objekt"}});
    let plan = server(json!({"tools": [bad, tool("good")]}));
    let error = place.wrong(plan.clone()).await;
    let begin = "the MCP server `fake`: the arguments of its tool `bad` are ";
    assert!(error.starts_with(begin) && error.contains("objekt"), "{error}");
    let only = McpServer { tools: Some(vec!["good".to_owned()]), ..plan };
    assert_eq!(names(&place.start(&[only]).await.unwrap()), ["fake__good"]);
}

#[tokio::test]
async fn what_is_wanted_and_not_there_is_an_error() {
    let place = Place::new();
    let plan = server(json!({"tools": [tool("a"), tool("b")]}));
    let error = place.wrong(McpServer { tools: Some(vec!["c".to_owned()]), ..plan }).await;
    assert_eq!(error, "the MCP server `fake` has no tool `c`; it has a, b");
    let command = vec!["no-such-server".into()];
    let error = place.wrong(McpServer { name: "x".to_owned(), command, tools: None }).await;
    let begin = "the MCP server `x`: cannot start `no-such-server`: ";
    assert!(error.starts_with(begin), "{error}");
}
