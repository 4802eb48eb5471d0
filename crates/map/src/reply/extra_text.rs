//! Tests of replies with additional text: reasoning, echoes, prose and envelopes.

use super::*;
use crate::task::FieldType;

const MISSING: &str = "the reply has no answer for it";

/// Reads answers with two fields for `a` and `b`. Returns the values or the problem of each.
fn read_labels(text: &str, format: ReplyFormat, required: bool) -> Vec<String> {
    let field = |name: &str, kind| Field { required, ..Field::new(name, kind) };
    let fields = vec![field("label", FieldType::String), field("n", FieldType::Integer)];
    read_with(text, format, &Task::new("x", fields))
}

fn read_with(text: &str, format: ReplyFormat, task: &Task) -> Vec<String> {
    let ids = ["a".to_owned(), "b".to_owned()];
    let show = |answer: Result<Vec<Value>, ReplyItemError>| {
        answer.map_or_else(|error| error.to_string(), |values| Value::from(values).to_string())
    };
    match align(text, format, task, &ids) {
        Ok(aligned) => aligned.answers.into_iter().map(show).collect(),
        Err(problem) => vec![problem],
    }
}

/// The same answers in all formats.
const ANSWERS: [(ReplyFormat, &str); 3] = [
    (ReplyFormat::Json, r#"{"items":[{"id":"a","label":"x","n":1},{"id":"b","label":"y","n":2}]}"#),
    (
        ReplyFormat::Xml,
        "<item id=\"a\"><label>x</label><n>1</n></item>\n<item id=\"b\"><label>y</label><n>2</n></item>",
    ),
    (ReplyFormat::Yaml, "- id: a\n  label: x\n  n: 1\n- id: b\n  label: y\n  n: 2\nend: true"),
];

const BOTH: [&str; 2] = [r#"["x",1]"#, r#"["y",2]"#];

#[test]
fn reasoning_before_an_answer_is_ignored() {
    let thoughts = [
        r#"The first is {"id":"a","data":{"text":"…"}}, so {"id":"a","label":"draft","n":9}."#,
        "- id: b\n  label: draft\n  n: 9\n\nNo, that is <item id=\"b\"><label>draft</label><n>9</n></item>",
        "I have to write <item id=\"…\"> or { first.",
    ];
    for (format, answers) in ANSWERS {
        for thought in thoughts {
            for text in [
                format!("<think>\n{thought}\n</think>\n\n{answers}"),
                format!("\n <Thinking>{thought}</Thinking>{answers}"),
            ] {
                assert_eq!(read_labels(&text, format, true), BOTH, "{text}");
            }
            // Reasoning without an end.
            let text = format!("<think>\n{thought}\n{answers}");
            assert_eq!(read_labels(&text, format, true), ["it ends while thinking"], "{text}");
        }
        // Reasoning without a start tag.
        for thought in &thoughts[..2] {
            for text in [
                format!("{thought}\n</think>\n\n{answers}"),
                format!("{thought} So be it.</think>{answers}"),
                format!("<think>I end with </think> then.\n{thought}\n</think>\n{answers}"),
            ] {
                assert_eq!(read_labels(&text, format, true), BOTH, "{text}");
            }
        }
    }
}

#[test]
fn answers_that_contain_a_reasoning_tag_are_kept() {
    let label = "a </think> b";
    for (format, text) in [
        (
            ReplyFormat::Json,
            r#"[{"id":"a","label":"a </think> b","n":1},{"id":"b","label":"a </think> b","n":2}]"#,
        ),
        (
            ReplyFormat::Json,
            "{\"id\":\"a\",\"label\":\"a </think> b\",\"n\":1}\n{\"id\":\"b\",\"label\":\"a </think> b\",\"n\":2}",
        ),
        (
            ReplyFormat::Xml,
            "<item id=\"a\">\n<label>a &lt;/think> b</label><n>1</n></item><item id=\"b\">\n<label><![CDATA[a </think> b]]></label><n>2</n></item>",
        ),
        (
            ReplyFormat::Yaml,
            "- id: a\n  label: a </think> b\n  n: 1\n- label: a </think> b\n  id: b\n  n: 2\nend: true",
        ),
    ] {
        let expected = [format!("[\"{label}\",1]"), format!("[\"{label}\",2]")];
        assert_eq!(read_labels(text, format, true), expected, "{text}");
    }
}

#[test]
fn mentions_of_items_are_not_answers() {
    let echo = r#"{"id":"a","data":{"label":"z","n":7}}"#;
    for mention in [
        format!("{echo}\n"),
        "{\"id\":\"a\",\"why\":\"it is short\"}\n".to_owned(),
        "{\"id\":\"a\"}\n".to_owned(),
        "<item id=\"a\"/>\n".to_owned(),
        "<item id=\"a\"><data>z</data></item>\n".to_owned(),
        "- id: a\n  why: so\nend: true\n\n".to_owned(),
    ] {
        for (format, answers) in ANSWERS {
            for required in [true, false] {
                let text = format!("{mention}{answers}");
                assert_eq!(read_labels(&text, format, required), BOTH, "{text}");
                let text = format!("{answers}\n\n{mention}");
                assert_eq!(read_labels(&text, format, required), BOTH, "{text}");
            }
        }
    }
    // If all fields are optional, a mention alone is an answer without values.
    assert_eq!(read_labels(r#"[{"id":"a"}]"#, ReplyFormat::Json, false), ["[null,null]", MISSING]);
    assert_eq!(
        read_labels(r#"[{"id":"a"}]"#, ReplyFormat::Json, true),
        ["`label` is missing", MISSING]
    );
    // A broken item may have been an answer.
    let text = r#"[{"id":"a","label":"x","n":1},{"id":"a","label":},{"id":"b"}]"#;
    let expected = ["the reply has several different answers for it", "[null,null]"];
    assert_eq!(read_labels(text, ReplyFormat::Json, false), expected);
}

/// A task whose answers contain objects.
fn nested() -> Task {
    let optional = |name: &str, kind| Field { required: false, ..Field::new(name, kind) };
    let fields = vec![optional("label", FieldType::String), optional("of", FieldType::Object)];
    Task::new("x", fields)
}

#[test]
fn answers_with_objects_may_have_prose_around_them() {
    let list = r#"[{"id":"a","label":"x","of":{"id":"b","label":"z"}},{"id":"b","label":"y"}]"#;
    let (table, lines) = (format!("{{\"items\":{list}}}"), list[1..list.len() - 1].to_owned());
    let expected = [r#"["x",{"id":"b","label":"z"}]"#, r#"["y",null]"#];
    let read_nested = |text: &str| read_with(text, ReplyFormat::Json, &nested());
    for reply in [&table, list, &lines.replace("}},{", "}}\n{")] {
        for text in [
            format!("Here is the JSON: {reply}"),
            format!("<answer>{reply}</answer>"),
            format!("```json {reply}```"),
            format!("```\n{reply}\n```"),
            format!("\u{feff}{reply}"),
            format!("I looked at all of them.\n\n{reply}\n\nAnything else?"),
        ] {
            assert_eq!(read_nested(&text), expected, "{text}");
        }
    }
    for text in [
        format!("label: what it is called.\nof: the object.\n\n{table}"),
        format!("There is no <item> in it, but: {table}"),
        format!("label: what it is called. So: {table}"),
    ] {
        assert_eq!(read_nested(&text), expected, "{text}");
    }
    // The rest of a damaged answer does not count as prose.
    let decoy = r#"{"id":"b","label":"z"}"#;
    for text in [
        format!(r#"f": {decoy}, "label": "x"}}]"#),
        format!("f: {decoy}\n  label: x\nend: true"),
        format!("el>x</label><of>{decoy}</of></item>"),
        format!("- id: a\n  of: {decoy}\n"),
        format!(r#"Here is {{"id":"a", "of": {decoy}, "label": "x"#),
    ] {
        let answers = read_nested(&text);
        assert!(!answers.iter().any(|answer| answer.contains('z')), "{text}: {answers:?}");
    }
}

#[test]
fn envelope_with_its_own_id_or_field_is_not_an_item() {
    let items = r#"[{"id":"a","label":"x","n":1},{"id":"b","label":"y","n":2}]"#;
    for text in [
        format!(r#"{{"id":"resp_1","items":{items}}}"#),
        format!(r#"{{"items":{items},"id":"resp_1"}}"#),
        format!(r#"{{"n":4,"items":{items}}}"#),
        format!(r#"[{{"id":17,"n":2,"items":{items}}}]"#),
    ] {
        for required in [true, false] {
            assert_eq!(read_labels(&text, ReplyFormat::Json, required), BOTH, "{text}");
        }
    }
    // A cut envelope yields the items before the cut.
    let cut = format!(r#"{{"id":"resp_1","items":{items}"#).replace("\"n\":2}]", "");
    assert_eq!(read_labels(&cut, ReplyFormat::Json, false), [BOTH[0], "it ends in the middle"]);
    // An item is not an envelope.
    let within = r#"{"id":"a","label":"x","n":1,"items":[{"id":"b","label":"y","n":2}]}"#;
    assert_eq!(read_labels(within, ReplyFormat::Json, false), [BOTH[0], MISSING]);
}

#[test]
fn case_of_names_and_quotes_around_ids_are_corrected() {
    let text = r#"[{"ID":"`a`","Label":"x","N":1},{"Id":"'B'","LABEL":"y","n":2}]"#;
    assert_eq!(read_labels(text, ReplyFormat::Json, true), BOTH);
    // Two names that differ just in case are ambiguous.
    let twice = r#"[{"id":"a","Label":"x","label":"z","n":1},{"id":"b","label":"y","n":2}]"#;
    let expected = ["`label` comes twice (line 1 of the reply)", BOTH[1]];
    assert_eq!(read_labels(twice, ReplyFormat::Json, true), expected);
    // Names within a value are arbitrary.
    let inner = r#"[{"id":"a","of":{"Label":"z","ID":"b"}}]"#;
    let expected = [r#"[null,{"ID":"b","Label":"z"}]"#, MISSING];
    assert_eq!(read_with(inner, ReplyFormat::Json, &nested()), expected);
}
