//! The output's structure, and parts of the output.

use crate::{attempt_with, check, expect_all, expect_error, expect_inconclusive, result};

#[test]
fn formats_are_recognised() {
    expect_all(&[
        ("kind = 'is_json'", " {\"a\": [1, null]} ", true),
        ("kind = 'is_json'", "{\"a\": 1} and more", false),
        ("kind = 'is_json'", "\"text\"", true),
        ("kind = 'is_json'", "", false),
        ("kind = 'is_xml'", "<?xml version=\"1.0\"?>\n<a b='1'>é &amp; &#233;<c/></a>\n", true),
        ("kind = 'is_xml'", "<!DOCTYPE a [<!ENTITY e \"x\">]><a>&e;</a>", true),
        ("kind = 'is_xml'", "<a><b></a></b>", false),
        ("kind = 'is_xml'", "<a>", false),
        ("kind = 'is_xml'", "<a/><b/>", false),
        ("kind = 'is_xml'", "<a/> and more", false),
        ("kind = 'is_xml'", "<a b='1' b='2'/>", false),
        ("kind = 'is_xml'", "<a b=1/>", false),
        ("kind = 'is_xml'", "<a>&nbsp;</a>", false),
        ("kind = 'is_xml'", "<1a/>", false),
        ("kind = 'is_xml'", "just text", false),
        ("kind = 'is_xml'", "", false),
        ("kind = 'is_yaml'", "a: 1\nb:\n  - x\n  - y\n", true),
        ("kind = 'is_yaml'", "- ключ: é\n", true),
        ("kind = 'is_yaml'", "{\"a\": 1}", true),
        ("kind = 'is_yaml'", "a: [1", false),
        ("kind = 'is_yaml'", "a: 1\n b: 2\n", false),
        ("kind = 'is_yaml'", "just text", false),
        ("kind = 'is_yaml'", "12", false),
        ("kind = 'is_yaml'", "", false),
    ]);
}

const CAPITAL: &str = "{ type = 'object', required = ['capital'], properties = { capital = { type = 'string', minLength = 2 } } }";

#[test]
fn schemas_are_applied() {
    let whole = format!("kind = 'json_schema'\nschema = {CAPITAL}");
    let part = format!("kind = 'contains_json'\nschema = {CAPITAL}");
    expect_all(&[
        (&whole, "{\"capital\": \"Paris\"}", true),
        (&whole, "{\"capital\": 1}", false),
        (&whole, "{}", false),
        (&whole, "no JSON", false),
        (&part, "I say {\"x\": 1} and ```json\n{\"capital\": \"Paris\"}\n```", true),
        (&part, "I say {\"x\": 1}", false),
        ("kind = 'contains_json'", "I say {\"x\": 1}", true),
        ("kind = 'contains_json'", "I say [1, 2, and", false),
        ("kind = 'contains_json'", "I say 12", false),
    ]);
    let wrong = result(&whole, &attempt_with("{\"capital\": \"é\"}"));
    assert!(wrong.message.ends_with(" at /capital"), "{}", wrong.message);
    expect_error(
        "kind = 'json_schema'\nschema = { type = 'objekt' }",
        "schema",
        "not a JSON Schema",
    );
    expect_error("kind = 'json_schema'", "kind", "needs `schema` or `file`");
    expect_error(
        "kind = 'contains_json'\nschema = { '$ref' = 'https://x.test/a' }",
        "schema",
        "not",
    );
}

#[test]
fn json_paths_are_evaluated() {
    let document =
        r#"{"cities": [{"name": "Rome", "size": 2}, {"name": "Paris", "size": 2.0}], "ok": true}"#;
    for (lines, expected) in [
        ("path = '$.cities[*].name'\nequals = 'Paris'", true),
        ("path = '$.cities[0].name'\nequals = 'Paris'", false),
        ("path = '$.cities[*].name'\nmatches = '^P.*s$'", true),
        ("path = '$.cities[*].name'\nmatches = '^Q'", false),
        ("path = '$.cities[1].size'\nequals = 2", true),
        ("path = '$.cities[1].size'\nequals = 3", false),
        ("path = '$.cities[0].size'\nequals = '2'", true),
        ("path = '$.ok'\nequals = 'true'", true),
        ("path = '$.ok'\nequals = true", true),
        ("path = '$.cities[0]'\nequals = { name = 'Rome', size = 2.0 }", true),
        ("path = '$.cities[0]'\nequals = { name = 'Rome' }", false),
        ("path = '$.cities[?@.size > 1].name'\nequals = 'Rome'", true),
        ("path = '$.cities[?search(@.name, \"ari\")].name'", true),
        ("path = '$..nowhere'", false),
        ("path = '$.cities[0].size'\nmatches = '^2$'", true),
    ] {
        crate::expect(&format!("kind = 'json_path'\n{lines}"), &attempt_with(document), expected);
    }
    crate::expect("kind = 'json_path'\npath = '$'", &attempt_with("no JSON"), false);
    let lines = "kind = 'json_path'\npath = '$.cities[*].name'\nequals = 'Oslo'";
    let found = result(lines, &attempt_with(document)).message;
    assert_eq!(found, r#"$.cities[*].name is "\"Rome\"", "\"Paris\"", expected "\"Oslo\"""#);
    expect_error("kind = 'json_path'\npath = 'cities'", "path", "not a JSONPath");
    expect_error("kind = 'json_path'\npath = '$'\nmatches = '('", "matches", "regular expression");
    expect_error("kind = 'json_path'\npath = '$'\nequals = 1\nmatches = 'x'", "matches", "either");
}

#[test]
fn part_of_the_output_is_extracted() {
    let prose = "Here:\n```json\n{\"a\": 1}\n```\nand\n```python\nprint(1)\n```\n";
    for (lines, expected) in [
        ("kind = 'is_json'\nextract = 'code_block'", true),
        ("kind = 'is_json'\nextract = 'json'", true),
        ("kind = 'equals'\nvalue = 'print(1)'\nextract = 'code_block'\nlanguage = 'Python'", true),
        ("kind = 'contains'\nvalue = 'Here'\nextract = 'code_block'", false),
        ("kind = 'json_path'\npath = '$.a'\nequals = 1\nextract = 'json'", true),
    ] {
        crate::expect(lines, &attempt_with(prose), expected);
    }
    expect_error("kind = 'is_json'\nlanguage = 'json'", "language", "extract");
    expect_error("kind = 'is_json'\nlanguage = 'json'\nextract = 'json'", "language", "extract");
}

#[test]
fn missing_part_fails_negated_or_not() {
    for negate in [false, true] {
        for (lines, message) in [
            ("kind = 'contains'\nvalue = 'x'\nextract = 'code_block'", "no code block in"),
            (
                "kind = 'is_json'\nextract = 'code_block'\nlanguage = 'json'",
                "no code block of \"json\" in",
            ),
            ("kind = 'is_json'\nextract = 'json'", "no JSON object or list in"),
        ] {
            let found = check(lines, negate).run(&attempt_with("only x")).unwrap();
            assert!(!found.passed && found.message.contains(message), "{lines}: {}", found.message);
        }
    }
}

#[test]
fn pattern_that_takes_too_long_is_inconclusive_negated_or_not() {
    let evil = r"^(?:(?=a)a+)+$";
    let pattern = format!("{{ type = 'string', pattern = '{evil}' }}");
    let text = format!("\"{}!\"", "a".repeat(60));
    for lines in [
        format!("kind = 'json_schema'\nschema = {pattern}"),
        format!("kind = 'json_schema'\nschema = {{ not = {pattern} }}"),
        format!("kind = 'json_schema'\nschema = {{ anyOf = [{pattern}, {{ type = 'number' }}] }}"),
        format!("kind = 'contains_json'\nschema = {{ items = {{ not = {pattern} }} }}"),
        format!("kind = 'json_schema'\nschema = {{ patternProperties = {{ '{evil}' = false }} }}"),
    ] {
        let text = match lines.contains("items") {
            true => format!("[{text}]"),
            false if lines.contains("patternProperties") => format!("{{{text}: 1}}"),
            false => text.clone(),
        };
        expect_inconclusive(&lines, &attempt_with(&text), "too many steps");
    }
    let lookahead = "kind = 'json_schema'\nschema = { pattern = '^(?=.*[0-9])a' }";
    expect_all(&[(lookahead, "\"ab1\"", true), (lookahead, "\"ab\"", false)]);
}

#[test]
fn patterns_without_lookaround_are_linear() {
    let lines = "kind = 'json_schema'\nschema = { pattern = '^(a+)+$' }";
    let text = format!("\"{}!\"", "a".repeat(100_000));
    expect_all(&[(lines, &text, false), (lines, "\"aaa\"", true)]);
}

#[test]
fn json_that_cannot_be_represented_is_inconclusive() {
    let deep = "[".repeat(1000) + &"]".repeat(1000);
    for text in [deep.as_str(), "[1e999]"] {
        let attempt = attempt_with(text);
        for lines in [
            "kind = 'json_schema'\nschema = { type = 'array' }",
            "kind = 'contains_json'\nschema = { type = 'array' }",
            "kind = 'json_path'\npath = '$[0]'",
        ] {
            expect_inconclusive(lines, &attempt, "cannot be tested");
        }
        crate::expect("kind = 'is_json'", &attempt, true);
        crate::expect("kind = 'contains_json'", &attempt, true);
    }
}

#[test]
fn depth_is_no_reason_to_fail() {
    let brackets = format!("{}1{}", "[".repeat(20_000), "]".repeat(20_000));
    crate::expect("kind = 'is_json'", &attempt_with(&brackets), true);
    expect_inconclusive("kind = 'is_yaml'", &attempt_with(&brackets), "cannot be tested");
    let xml = format!("{}x{}", "<a>".repeat(20_000), "</a>".repeat(20_000));
    crate::expect("kind = 'is_xml'", &attempt_with(&xml), true);
}
