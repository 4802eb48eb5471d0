//! What models write besides answers, and around them.

use super::*;
use crate::task::FieldType;

const NONE: &str = "the reply has no answer for it";

/// Two fields of an answer about `a` and `b`, which may both be left out if they may be: what is
/// there, or why not.
fn read(text: &str, format: Format, required: bool) -> Vec<String> {
    let field = |name: &str, kind| Field { required, ..Field::new(name, kind) };
    let fields = vec![field("label", FieldType::String), field("n", FieldType::Integer)];
    aligned(text, format, &Task::new("x", fields))
}

fn aligned(text: &str, format: Format, task: &Task) -> Vec<String> {
    let ids = ["a".to_owned(), "b".to_owned()];
    let shown = |answer: Result<Vec<Value>, String>| {
        answer.map_or_else(|reason| reason, |values| Value::from(values).to_string())
    };
    match align(text, format, task, &ids) {
        Ok(aligned) => aligned.answers.into_iter().map(shown).collect(),
        Err(problem) => vec![problem],
    }
}

/// The same answers in all forms.
const ANSWERS: [(Format, &str); 3] = [
    (Format::Json, r#"{"items":[{"id":"a","label":"x","n":1},{"id":"b","label":"y","n":2}]}"#),
    (
        Format::Xml,
        "<item id=\"a\"><label>x</label><n>1</n></item>\n<item id=\"b\"><label>y</label><n>2</n></item>",
    ),
    (Format::Yaml, "- id: a\n  label: x\n  n: 1\n- id: b\n  label: y\n  n: 2\nend: true"),
];

const BOTH: [&str; 2] = [r#"["x",1]"#, r#"["y",2]"#];

#[test]
fn what_was_thought_before_an_answer_is_no_answer() {
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
                assert_eq!(read(&text, format, true), BOTH, "{text}");
            }
            // It never comes to an answer.
            let text = format!("<think>\n{thought}\n{answers}");
            assert_eq!(read(&text, format, true), ["it ends while thinking"], "{text}");
        }
        // The server has left out where it begins.
        for thought in &thoughts[..2] {
            for text in [
                format!("{thought}\n</think>\n\n{answers}"),
                format!("{thought} So be it.</think>{answers}"),
                format!("<think>I end with </think> then.\n{thought}\n</think>\n{answers}"),
            ] {
                assert_eq!(read(&text, format, true), BOTH, "{text}");
            }
        }
    }
}

#[test]
fn answers_about_thinking_are_answers() {
    let label = "a </think> b";
    for (format, text) in [
        (
            Format::Json,
            r#"[{"id":"a","label":"a </think> b","n":1},{"id":"b","label":"a </think> b","n":2}]"#,
        ),
        (
            Format::Json,
            "{\"id\":\"a\",\"label\":\"a </think> b\",\"n\":1}\n{\"id\":\"b\",\"label\":\"a </think> b\",\"n\":2}",
        ),
        (
            Format::Xml,
            "<item id=\"a\">\n<label>a &lt;/think> b</label><n>1</n></item><item id=\"b\">\n<label><![CDATA[a </think> b]]></label><n>2</n></item>",
        ),
        (
            Format::Yaml,
            "- id: a\n  label: a </think> b\n  n: 1\n- label: a </think> b\n  id: b\n  n: 2\nend: true",
        ),
    ] {
        let expected = [format!("[\"{label}\",1]"), format!("[\"{label}\",2]")];
        assert_eq!(read(text, format, true), expected, "{text}");
    }
}

#[test]
fn who_is_only_mentioned_is_not_answered() {
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
                assert_eq!(read(&text, format, required), BOTH, "{text}");
                let text = format!("{answers}\n\n{mention}");
                assert_eq!(read(&text, format, required), BOTH, "{text}");
            }
        }
    }
    // Where everything may be left out, it is an answer that leaves everything out.
    assert_eq!(read(r#"[{"id":"a"}]"#, Format::Json, false), ["[null,null]", NONE]);
    assert_eq!(read(r#"[{"id":"a"}]"#, Format::Json, true), ["`label` is missing", NONE]);
    // What is broken may have been an answer.
    let text = r#"[{"id":"a","label":"x","n":1},{"id":"a","label":},{"id":"b"}]"#;
    let expected = ["the reply has several different answers for it", "[null,null]"];
    assert_eq!(read(text, Format::Json, false), expected);
}

/// A task whose answers hold objects, for which JSON among prose is all that a model can write.
fn nested() -> Task {
    let optional = |name: &str, kind| Field { required: false, ..Field::new(name, kind) };
    let fields = vec![optional("label", FieldType::String), optional("of", FieldType::Object)];
    Task::new("x", fields)
}

#[test]
fn objects_in_answers_allow_for_words_around_them() {
    let list = r#"[{"id":"a","label":"x","of":{"id":"b","label":"z"}},{"id":"b","label":"y"}]"#;
    let (table, lines) = (format!("{{\"items\":{list}}}"), list[1..list.len() - 1].to_owned());
    let expected = [r#"["x",{"id":"b","label":"z"}]"#, r#"["y",null]"#];
    let read = |text: &str| aligned(text, Format::Json, &nested());
    for reply in [&table, list, &lines.replace("}},{", "}}\n{")] {
        for text in [
            format!("Here is the JSON: {reply}"),
            format!("<answer>{reply}</answer>"),
            format!("```json {reply}```"),
            format!("```\n{reply}\n```"),
            format!("\u{feff}{reply}"),
            format!("I looked at all of them.\n\n{reply}\n\nAnything else?"),
        ] {
            assert_eq!(read(&text), expected, "{text}");
        }
    }
    for text in [
        format!("label: what it is called.\nof: the object.\n\n{table}"),
        format!("There is no <item> in it, but: {table}"),
        format!("label: what it is called. So: {table}"),
    ] {
        assert_eq!(read(&text), expected, "{text}");
    }
    // What is left of an answer is not what stands before one.
    let decoy = r#"{"id":"b","label":"z"}"#;
    for text in [
        format!(r#"f": {decoy}, "label": "x"}}]"#),
        format!("f: {decoy}\n  label: x\nend: true"),
        format!("el>x</label><of>{decoy}</of></item>"),
        format!("- id: a\n  of: {decoy}\n"),
        format!(r#"Here is {{"id":"a", "of": {decoy}, "label": "x"#),
    ] {
        let read = read(&text);
        assert!(!read.iter().any(|answer| answer.contains('z')), "{text}: {read:?}");
    }
}

#[test]
fn an_envelope_with_an_id_or_a_field_of_its_own_is_no_item() {
    let items = r#"[{"id":"a","label":"x","n":1},{"id":"b","label":"y","n":2}]"#;
    for text in [
        format!(r#"{{"id":"resp_1","items":{items}}}"#),
        format!(r#"{{"items":{items},"id":"resp_1"}}"#),
        format!(r#"{{"n":4,"items":{items}}}"#),
        format!(r#"[{{"id":17,"n":2,"items":{items}}}]"#),
    ] {
        for required in [true, false] {
            assert_eq!(read(&text, Format::Json, required), BOTH, "{text}");
        }
    }
    // Of one that is cut, as much as of any other.
    let cut = format!(r#"{{"id":"resp_1","items":{items}"#).replace("\"n\":2}]", "");
    assert_eq!(read(&cut, Format::Json, false), [BOTH[0], "it ends in the middle"]);
    // An item is no envelope.
    let within = r#"{"id":"a","label":"x","n":1,"items":[{"id":"b","label":"y","n":2}]}"#;
    assert_eq!(read(within, Format::Json, false), [BOTH[0], NONE]);
}

#[test]
fn names_in_other_letters_and_ids_in_quotes_are_put_right() {
    let text = r#"[{"ID":"`a`","Label":"x","N":1},{"Id":"'B'","LABEL":"y","n":2}]"#;
    assert_eq!(read(text, Format::Json, true), BOTH);
    // Whichever is meant, it is not both.
    let twice = r#"[{"id":"a","Label":"x","label":"z","n":1},{"id":"b","label":"y","n":2}]"#;
    let expected = ["`label` comes twice (line 1 of the reply)", BOTH[1]];
    assert_eq!(read(twice, Format::Json, true), expected);
    // Within an answer, names are the model's own.
    let inner = r#"[{"id":"a","of":{"Label":"z","ID":"b"}}]"#;
    let expected = [r#"[null,{"ID":"b","Label":"z"}]"#, NONE];
    assert_eq!(aligned(inner, Format::Json, &nested()), expected);
}
