//! Tool calls, turns, time, cost, tokens and finish reasons.

use crate::{attempt_with, expect, expect_error, expect_inconclusive};
use bakeoff_core::{Attempt, FinishReason, NanoDollars, Timing, ToolUse, Usage};
use serde_json::json;

fn with_calls(names: &[&str]) -> Attempt {
    let arguments = json!({"city": "Paris", "day": 12, "where": {"lat": 1.0, "long": 2}});
    let call = |name: &&str| ToolUse::new(*name, arguments.clone());
    Attempt { tool_uses: names.iter().map(call).collect(), ..Attempt::default() }
}

#[test]
fn tool_calls_are_matched() {
    let attempt = with_calls(&["search", "weather", "search", "answer"]);
    for (lines, expected) in [
        ("name = 'weather'", true),
        ("name = 'Weather'", false),
        ("name = 'weather'\nargs = { city = 'Paris' }", true),
        ("name = 'weather'\nargs = { city = 'Rome' }", false),
        ("name = 'weather'\nargs = { city = '^P' }", false),
        ("name = 'weather'\nargs = { day = 12.0, where = { lat = 1 } }", true),
        ("name = 'weather'\nargs = { where = { lat = 2 } }", false),
        ("name = 'weather'\nargs = { gone = 1 }", false),
        ("name = 'weather'\nargs_match = { city = '^P.*s$', day = '^12$' }", true),
        ("name = 'weather'\nargs_match = { city = '^Q' }", false),
        ("name = 'weather'\nargs_match = { gone = '.*' }", false),
    ] {
        expect(&format!("kind = 'tool_called'\n{lines}"), &attempt, expected);
    }
    for (names, expected) in [
        ("'search', 'answer'", true),
        ("'search', 'search', 'answer'", true),
        ("'weather', 'search'", true),
        ("'answer', 'search'", false),
        ("'weather', 'weather'", false),
    ] {
        expect(&format!("kind = 'tool_order'\nnames = [{names}]"), &attempt, expected);
    }
    expect("kind = 'tool_called'\nname = 'x'", &Attempt::default(), false);
    expect_error(
        "kind = 'tool_called'\nname = 'x'\nargs_match = { a = '(' }",
        "args_match",
        "regular",
    );
}

#[test]
fn limits_are_applied() {
    let attempt = Attempt {
        turns: Some(3),
        usage: Some(Usage { input: 10, cache_read: 5, output: 20, ..Usage::default() }),
        cost: Some(NanoDollars(1_500_000)),
        timing: Timing { latency_ms: 800, elapsed_ms: 99_999, ..Timing::default() },
        ..Attempt::default()
    };
    for (lines, expected) in [
        ("kind = 'max_turns'\nmax = 3", true),
        ("kind = 'max_turns'\nmax = 2", false),
        ("kind = 'latency'\nmax_ms = 800", true),
        ("kind = 'latency'\nmax_ms = 799", false),
        ("kind = 'cost'\nmax_usd = 0.0015", true),
        ("kind = 'cost'\nmax_usd = 0.0014999", false),
        ("kind = 'tokens'\nmax = 35", true),
        ("kind = 'tokens'\nmax = 34", false),
        ("kind = 'tokens'\nmax_input = 15\nmax_output = 20", true),
        ("kind = 'tokens'\nmax_input = 14\nmax_output = 20", false),
        ("kind = 'tokens'\nmax = 99\nmax_output = 19", false),
    ] {
        expect(lines, &attempt, expected);
    }
    expect_error("kind = 'tokens'", "kind", "`max`, `max_input` or `max_output`");
    let nothing = Attempt::default();
    expect_inconclusive("kind = 'max_turns'\nmax = 3", &nothing, "number of turns unknown");
    expect_inconclusive("kind = 'cost'\nmax_usd = 1", &nothing, "cost unknown");
    expect_inconclusive("kind = 'tokens'\nmax = 1", &nothing, "number of tokens unknown");
    expect_inconclusive(
        "kind = 'finish_reason'\nvalue = 'stop'",
        &nothing,
        "finish reason unknown",
    );
}

#[test]
fn finish_reason_is_compared() {
    let finished = |finish| Attempt { finish: Some(finish), ..attempt_with("text") };
    expect("kind = 'finish_reason'\nvalue = 'stop'", &finished(FinishReason::Stop), true);
    expect("kind = 'finish_reason'\nvalue = 'length'", &finished(FinishReason::Stop), false);
    let other = finished(FinishReason::Other("PAUSED".to_owned()));
    expect("kind = 'finish_reason'\nvalue = 'PAUSED'", &other, true);
    expect("kind = 'max_turns'\nmax = 1", &other, true);
    expect("kind = 'is_refusal'", &finished(FinishReason::ContentFilter), true);
}

#[test]
fn refusals_are_detected() {
    for (output, expected) in [
        ("I can't help with that.", true),
        ("I cannot help with that.", true),
        ("I’m sorry, but I can’t assist with that request.", true),
        ("Sorry, I am unable to do so.", true),
        ("**I'm sorry**, but as an AI language model, I cannot provide this.", true),
        ("Unfortunately, I won't be able to do it.", true),
        ("  I must decline.", true),
        ("Paris.", false),
        ("Sorry for the delay: it is Paris.", false),
        ("I can't wait to tell you: Paris!", false),
        ("The court said: I can't help with that.", false),
        ("Nothing says \"I cannot help\" like a locked door.", false),
        ("", false),
        ("日本語", false),
    ] {
        expect("kind = 'is_refusal'", &attempt_with(output), expected);
    }
}

#[test]
fn refused_calls_are_not_calls() {
    let refused = |name: &str| ToolUse { refused: true, ..ToolUse::new(name, json!({ "a": 1 })) };
    let run = |name: &str| ToolUse::new(name, json!({ "a": 2 }));
    let attempt = Attempt {
        tool_uses: vec![refused("x"), refused("bash"), run("y"), run("bash")],
        ..Attempt::default()
    };
    expect("kind = 'tool_called'\nname = 'x'", &attempt, false);
    expect("kind = 'tool_called'\nname = 'y'", &attempt, true);
    expect("kind = 'tool_called'\nname = 'bash'\nargs = { a = 1 }", &attempt, false);
    expect("kind = 'tool_called'\nname = 'bash'\nargs = { a = 2 }", &attempt, true);
    expect("kind = 'tool_order'\nnames = ['x', 'y']", &attempt, false);
    expect("kind = 'tool_order'\nnames = ['y', 'bash']", &attempt, true);
    expect("kind = 'max_command_count'\nlimit = 1", &attempt, true);
}
