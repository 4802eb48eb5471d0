//! What coding agents print, in the shapes that they have, and what is made of it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

use bakeoff_agent::{CodingAgent, Said};
use bakeoff_core::{NanoDollars, Usage};
use std::ffi::OsString;

fn said(agent: CodingAgent, lines: &[&str]) -> Said {
    let mut listener = agent.listener();
    // Pieces have nothing to do with lines.
    lines.join("\n").as_bytes().chunks(7).for_each(|piece| listener.hear(piece));
    listener.finish()
}

fn tools(said: &Said) -> Vec<String> {
    said.tool_uses.iter().map(|tool| format!("{} {}", tool.name, tool.arguments)).collect()
}

fn usage(
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
    reasoning: u64,
) -> Option<Usage> {
    Some(Usage { input, output, cache_read, cache_write, reasoning })
}

fn words(agent: CodingAgent, model: Option<&str>, more: &[&str]) -> String {
    let more: Vec<OsString> = more.iter().map(OsString::from).collect();
    let words: Vec<String> =
        agent.arguments(model, &more).into_iter().map(|word| word.into_string().unwrap()).collect();
    words.join(" ")
}

#[test]
fn every_agent_is_asked_for_events_and_asks_nothing() {
    let table = [
        (
            "claude",
            "-p - --dangerously-skip-permissions --output-format stream-json --verbose",
            "-p - --dangerously-skip-permissions --model M --output-format stream-json --verbose --x",
        ),
        (
            "codex",
            "exec --yolo --json --skip-git-repo-check -- -",
            "exec -m M --yolo --json --skip-git-repo-check --x -- -",
        ),
        (
            "gemini",
            "--prompt - --output-format stream-json --yolo",
            "--prompt - --output-format stream-json --yolo --model M --x",
        ),
        (
            "opencode",
            "run --dangerously-skip-permissions --format json -",
            "-m M run --dangerously-skip-permissions --format json --x -",
        ),
        (
            "cursor-agent",
            "--print --output-format stream-json --force",
            "--print --output-format stream-json --model M --force --x",
        ),
    ];
    for (name, plain, full) in table {
        let agent = CodingAgent::find(name).unwrap();
        assert_eq!(agent.name(), name);
        assert_eq!(words(agent, None, &[]), plain);
        assert_eq!(words(agent, Some("M"), &["--x"]), full);
        // A blank model is none.
        assert_eq!(words(agent, Some(" "), &[]), plain);
    }
    assert_eq!(CodingAgent::find("agent"), Some(CodingAgent::Cursor));
    assert_eq!(CodingAgent::find("emacs"), None);
}

const CLAUDE: [&str; 6] = [
    r#"{"type":"system","subtype":"init","cwd":"/w","tools":["Bash"],"skills":["pdf"]}"#,
    r#"{"type":"assistant","message":{"id":"m1","content":[{"type":"text","text":"Let me look."}],"usage":{"input_tokens":3,"output_tokens":5,"cache_read_input_tokens":100}},"parent_tool_use_id":null}"#,
    r#"{"type":"assistant","message":{"id":"m1","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}}],"usage":{"input_tokens":3,"output_tokens":9,"cache_read_input_tokens":100}},"parent_tool_use_id":null}"#,
    r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"a.txt"}]}}"#,
    r#"{"type":"assistant","message":{"id":"m2","content":[{"type":"text","text":"helper"}],"usage":{"input_tokens":1,"output_tokens":1}},"parent_tool_use_id":"t1"}"#,
    r#"{"type":"assistant","message":{"id":"m3","content":[{"type":"text","text":"There is a.txt."}],"usage":{"input_tokens":2,"output_tokens":4,"cache_creation_input_tokens":7}},"parent_tool_use_id":null}"#,
];

#[test]
fn claude() {
    let result = r#"{"type":"result","subtype":"success","is_error":false,"result":"There is a.txt.","num_turns":2,"total_cost_usd":0.0123,"usage":{"input_tokens":3,"cache_creation_input_tokens":4807,"cache_read_input_tokens":11219,"output_tokens":40}}"#;
    let heard = said(CodingAgent::Claude, &[&CLAUDE[..], &[result]].concat());
    assert_eq!(heard.answer.as_deref(), Some("There is a.txt."));
    assert_eq!(tools(&heard), [r#"Bash {"command":"ls"}"#]);
    assert_eq!((heard.turns, heard.cost), (Some(2), Some(NanoDollars(12_300_000))));
    assert_eq!(heard.usage, usage(3, 40, 11219, 4807, 0));
    assert_eq!(heard.problem, None);
    // One that was ended has no result, but tokens were used all the same.
    let ended = said(CodingAgent::Claude, &CLAUDE);
    assert_eq!(ended.usage, usage(6, 14, 100, 7, 0));
    assert_eq!((ended.answer.as_deref(), ended.turns), (Some("There is a.txt."), Some(3)));
}

#[test]
fn claude_in_trouble() {
    let limit = r#"{"type":"result","subtype":"success","is_error":true,"result":"Claude AI usage limit reached|1760000000","usage":{"input_tokens":0,"output_tokens":0}}"#;
    let heard = said(CodingAgent::Claude, &[CLAUDE[1], limit]);
    assert_eq!(heard.problem.as_deref(), Some("Claude AI usage limit reached|1760000000"));
    assert!(heard.answer.is_none() && !heard.met_own_limit());
    let turns = r#"{"type":"result","subtype":"error_max_turns","is_error":false,"num_turns":9}"#;
    let heard = said(CodingAgent::Claude, &[turns]);
    assert_eq!(heard.problem.as_deref(), Some("error_max_turns"));
    assert!(heard.met_own_limit());
}

#[test]
fn codex() {
    let heard = said(
        CodingAgent::Codex,
        &[
            "Reading prompt from stdin...",
            r#"{"type":"thread.started","thread_id":"0199-429"}"#,
            r#"{"type":"turn.started"}"#,
            r#"{"type":"item.started","item":{"id":"item_0","type":"command_execution","command":"bash -lc ls","status":"in_progress"}}"#,
            r#"{"type":"item.completed","item":{"id":"item_0","type":"command_execution","command":"bash -lc ls","aggregated_output":"a\n","exit_code":0,"status":"completed"}}"#,
            r#"{"type":"item.completed","item":{"id":"item_1","type":"mcp_tool_call","server":"s","tool":"look","arguments":{"q":1}}}"#,
            r#"{"type":"error","message":"Reconnecting... 1/5 (429 Too Many Requests)"}"#,
            r#"{"type":"item.completed","item":{"id":"item_2","type":"agent_message","text":"Done."}}"#,
            r#"{"type":"turn.completed","usage":{"input_tokens":8058,"cached_input_tokens":6912,"output_tokens":30,"reasoning_output_tokens":8}}"#,
            r#"{"type":"turn.completed","usage":{"input_tokens":100,"cached_input_tokens":0,"output_tokens":1}}"#,
        ],
    );
    assert_eq!(heard.answer.as_deref(), Some("Done."));
    assert_eq!(
        tools(&heard),
        [r#"command_execution {"command":"bash -lc ls"}"#, r#"look {"q":1}"#]
    );
    assert_eq!(heard.usage, usage(1246, 31, 6912, 0, 8));
    // It went on after the error.
    assert_eq!((heard.problem, heard.cost, heard.turns), (None, None, Some(1)));
    let failed = r#"{"type":"turn.failed","error":{"message":"You've hit your usage limit."}}"#;
    let heard = said(CodingAgent::Codex, &[failed]);
    assert_eq!(heard.problem.as_deref(), Some("You've hit your usage limit."));
}

#[test]
fn gemini() {
    let heard = said(
        CodingAgent::Gemini,
        &[
            r#"{"type":"init","session_id":"s","model":"gemini-2.5-pro"}"#,
            r#"{"type":"message","role":"user","content":"hi"}"#,
            r#"{"type":"message","role":"assistant","content":"I will ","delta":true}"#,
            r#"{"type":"message","role":"assistant","content":"look.","delta":true}"#,
            r#"{"type":"tool_use","tool_name":"run_shell_command","tool_id":"1","parameters":{"command":"ls"}}"#,
            r#"{"type":"tool_result","tool_id":"1","status":"success","output":"a"}"#,
            r#"{"type":"message","role":"assistant","content":"It ","delta":true}"#,
            r#"{"type":"message","role":"assistant","content":"is a.","delta":true}"#,
            r#"{"type":"result","status":"success","stats":{"total_tokens":7100,"input_tokens":7003,"output_tokens":90,"cached":6637,"duration_ms":5,"tool_calls":1}}"#,
        ],
    );
    assert_eq!(heard.answer.as_deref(), Some("It is a."));
    assert_eq!(tools(&heard), [r#"run_shell_command {"command":"ls"}"#]);
    assert_eq!((heard.usage, heard.turns), (usage(366, 90, 6637, 0, 0), Some(2)));
    let failed = r#"{"type":"result","status":"error","error":{"type":"Error","message":"Quota exceeded"},"stats":{}}"#;
    assert_eq!(said(CodingAgent::Gemini, &[failed]).problem.as_deref(), Some("Quota exceeded"));
}

#[test]
fn opencode() {
    let heard = said(
        CodingAgent::OpenCode,
        &[
            r#"{"type":"step_start","timestamp":1,"sessionID":"s","part":{"type":"step-start"}}"#,
            r#"{"type":"text","sessionID":"s","part":{"type":"text","text":"Looking."}}"#,
            r#"{"type":"tool_use","sessionID":"s","part":{"type":"tool","tool":"bash","state":{"status":"completed","input":{"command":"ls"},"output":"a"}}}"#,
            r#"{"type":"step_finish","sessionID":"s","part":{"type":"step-finish","cost":0.01,"tokens":{"total":8011,"input":7952,"output":35,"reasoning":24,"cache":{"read":0,"write":0}}}}"#,
            r#"{"type":"text","sessionID":"s","part":{"type":"text","text":"It is a."}}"#,
            r#"{"type":"step_finish","sessionID":"s","part":{"type":"step-finish","cost":0.02,"tokens":{"total":62,"input":10,"output":20,"reasoning":5,"cache":{"read":30,"write":2}}}}"#,
        ],
    );
    assert_eq!(heard.answer.as_deref(), Some("It is a."));
    assert_eq!(tools(&heard), [r#"bash {"command":"ls"}"#]);
    // Of the first step the thinking comes on top, of the second it is included.
    assert_eq!(heard.usage, usage(7962, 79, 30, 2, 29));
    assert_eq!((heard.cost, heard.turns), (Some(NanoDollars(30_000_000)), Some(2)));
    let failed = r#"{"type":"error","sessionID":"s","error":{"name":"APIError","data":{"message":"slow down","statusCode":429}}}"#;
    assert_eq!(said(CodingAgent::OpenCode, &[failed]).problem.as_deref(), Some("429: slow down"));
}

#[test]
fn cursor() {
    let heard = said(
        CodingAgent::Cursor,
        &[
            r#"{"type":"system","subtype":"init","cwd":"/w"}"#,
            r#"{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"Looking."}]}}"#,
            r#"{"type":"tool_call","subtype":"started","call_id":"c1","tool_call":{"shellToolCall":{"args":{"command":"ls"}}}}"#,
            r#"{"type":"tool_call","subtype":"completed","call_id":"c1","tool_call":{"shellToolCall":{"args":{"command":"ls"},"result":{"success":{"stdout":"a"}}}}}"#,
            r#"{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"It is a."}]}}"#,
            r#"{"type":"result","subtype":"success","is_error":false,"result":"Looking.It is a.","duration_ms":5,"usage":{"inputTokens":2,"outputTokens":33,"cacheReadTokens":12228,"cacheWriteTokens":4}}"#,
        ],
    );
    assert_eq!(heard.answer.as_deref(), Some("Looking.It is a."));
    assert_eq!(tools(&heard), [r#"shell {"command":"ls"}"#]);
    assert_eq!((heard.usage, heard.turns), (usage(2, 33, 12228, 4, 0), Some(2)));
}

#[test]
fn what_is_kept_of_tools_has_a_bound() {
    let call = |size: usize| {
        format!(
            r#"{{"type":"tool_use","tool_name":"write","parameters":{{"text":"{}"}}}}"#,
            "x".repeat(size)
        )
    };
    let lines = [call(600_000), call(600_000), call(10)];
    let heard = said(CodingAgent::Gemini, &lines.each_ref().map(String::as_str));
    let kept: Vec<bool> = heard.tool_uses.iter().map(|tool| !tool.arguments.is_null()).collect();
    assert_eq!(kept, [true, false, true]);
}

#[test]
fn nonsense_is_nothing() {
    for agent in CodingAgent::ALL {
        let lines = ["", "{", "[1]", "null", r#"{"type":7}"#, r#"{"type":"result"}"#, "\u{0}"];
        let heard = said(agent, &lines);
        assert_eq!((heard.answer, heard.tool_uses.len()), (None, 0), "{agent:?}");
    }
}

#[test]
fn what_is_not_kept_is_counted() {
    let long = "x".repeat(600_000);
    let event = |command: &str| {
        format!(
            r#"{{"type":"assistant","message":{{"content":[{{"type":"tool_use","name":"Bash","input":{{"command":"{command}"}}}}]}}}}"#
        )
    };
    let lines: Vec<String> = [&*long, &*long, "ls"].map(event).to_vec();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let kept = said(CodingAgent::Claude, &lines);
    assert_eq!(kept.tool_uses.len(), 3);
    assert_eq!((kept.dropped_tool_uses, kept.dropped_arguments), (0, 1));
    // More uses than anybody looks at.
    let small = event("ls");
    let kept = said(CodingAgent::Claude, &vec![small.as_str(); 10_003]);
    assert_eq!((kept.tool_uses.len(), kept.dropped_tool_uses), (10_000, 3));
    // A line that is too long, or nested too deeply, may have been anything, even the answer.
    let deep = format!("{{\"a\":{}1{}}}", "[".repeat(200), "]".repeat(200));
    for line in [format!("{{\"a\":\"{}\"}}", "x".repeat(9 << 20)), deep] {
        let kept = said(CodingAgent::Claude, &[&line]);
        assert_eq!(kept.dropped_tool_uses, 1);
        assert_eq!(kept.dropped_answer_bytes, line.len() as u64);
        let result = r#"{"type":"result","result":"fixed","usage":{}}"#;
        let kept = said(CodingAgent::Claude, &[&line, result]);
        assert_eq!((kept.dropped_answer_bytes, kept.answer.as_deref()), (0, Some("fixed")));
    }
}

#[test]
fn answers_that_come_in_pieces_end_somewhere() {
    let piece = format!(
        r#"{{"type":"message","role":"assistant","delta":true,"content":"{}"}}"#,
        "é".repeat(300_000)
    );
    let kept = said(CodingAgent::Gemini, &[&piece, &piece]);
    assert_eq!(kept.answer.unwrap().len() as u64 + kept.dropped_answer_bytes, 1_200_000);
    assert!(kept.dropped_answer_bytes > 0);
}

#[test]
fn names_of_tools_take_no_more_room_than_what_they_are_given() {
    let name = "x".repeat(600_000);
    let event = format!(r#"{{"type":"tool_use","tool_name":"{name}","parameters":{{}}}}"#);
    let kept = said(CodingAgent::Gemini, &[&event, &event]);
    assert_eq!((kept.tool_uses.len(), kept.dropped_tool_uses), (1, 1));
}

#[test]
fn listening_takes_no_more_room_the_longer_it_takes() {
    let id = |number: usize| format!("{number}-{}", "x".repeat(200));
    let events: [(CodingAgent, &dyn Fn(usize) -> String); 3] = [
        (CodingAgent::Claude, &|number| {
            let usage = r#"{"input_tokens":1,"output_tokens":2}"#;
            format!(r#"{{"type":"assistant","message":{{"id":"{}","usage":{usage}}}}}"#, id(number))
        }),
        (CodingAgent::Codex, &|number| {
            format!(
                r#"{{"type":"item.started","item":{{"type":"web_search","id":"{}"}}}}"#,
                id(number)
            )
        }),
        (CodingAgent::Cursor, &|number| {
            format!(
                r#"{{"type":"tool_call","call_id":"{}","tool_call":{{"xToolCall":{{}}}}}}"#,
                id(number)
            )
        }),
    ];
    for (agent, event) in events {
        let mut listener = agent.listener();
        for number in 0..20_000 {
            // Each comes twice.
            listener.hear(format!("{0}\n{0}\n", event(number)).as_bytes());
        }
        let room = format!("{listener:?}").len();
        assert!(room < 2_000_000, "{agent:?}: {room}");
        let said = listener.finish();
        if agent == CodingAgent::Claude {
            assert_eq!((said.turns, said.usage), (Some(20_000), usage(20_000, 40_000, 0, 0, 0)));
        } else {
            assert_eq!((said.tool_uses.len(), said.dropped_tool_uses), (10_000, 10_000));
        }
    }
}

#[test]
fn usage_that_is_not_told_is_not_known() {
    let claude = r#"{"type":"result","result":"fixed"}"#;
    assert_eq!(said(CodingAgent::Claude, &[claude]).usage, None);
    let spoke = r#"{"type":"assistant","message":{"id":"m","content":[]}}"#;
    let ended = said(CodingAgent::Claude, &[spoke]);
    assert_eq!((ended.usage, ended.turns), (None, Some(1)));
    let codex = r#"{"type":"turn.completed"}"#;
    assert_eq!(said(CodingAgent::Codex, &[codex]).usage, None);
    let gemini = r#"{"type":"result","status":"success"}"#;
    assert_eq!(said(CodingAgent::Gemini, &[gemini]).usage, None);
    let step = r#"{"type":"step_finish","part":{}}"#;
    assert_eq!(said(CodingAgent::OpenCode, &[step]).usage, None);
}
