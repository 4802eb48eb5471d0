//! Replies as models write them.

use super::*;
use crate::task::FieldType;
use proptest::prelude::*;
use serde_json::json;

fn task() -> Task {
    let number = Field { required: false, ..Field::new("n", FieldType::Integer) };
    let tags = Field { default: Some(json!([])), ..Field::new("tags", FieldType::Array) };
    let mut task = Task::new("x", vec![Field::new("label", FieldType::String), number, tags]);
    task.batch = vec![Field::new("language", FieldType::String)];
    task
}

/// `ab=label,n,tags` for each answer, and the reason where there is none.
fn aligned(text: &str, format: Format) -> Vec<String> {
    let ids = ["ab".to_owned(), "cd".to_owned()];
    match align(text, format, &task(), &ids) {
        Ok(aligned) => ids
            .iter()
            .zip(aligned.answers)
            .map(|(id, answer)| match answer {
                Ok(values) => {
                    let values: Vec<String> = values.iter().map(Value::to_string).collect();
                    format!("{id}={}", values.join(" "))
                }
                Err(reason) => format!("{id}: {reason}"),
            })
            .collect(),
        Err(problem) => vec![problem],
    }
}

#[test]
fn good_replies_in_all_forms_and_wrappings() {
    let expected = [r#"ab="x: <y>" 3 ["p","q"]"#, r#"cd="z" null []"#];
    let json = r#"{"items": [{"id": "cd", "label": "z"}, {"id": "ab", "label": "x: <y>", "n": "3", "tags": ["p", "q"]}]}"#;
    let by_id =
        r#"{"cd": {"label": "z"}, "ab": {"label": "x: <y>", "n": 3, "tags": ["p", "q",],},}"#;
    let lines = "{\"id\":\"ab\",\"label\":\"x: <y>\",\"n\":3,\"tags\":[\"p\",\"q\"]}\n{\"id\":\" CD \",\"label\":\"z\",\"n\":None}";
    let xml = r#"<reply><item id="ab"><label>x: &lt;y&gt;</label><n> 3 </n><tags><value>p</value><value>q</value></tags></item>
        <item><id>cd</id><label><![CDATA[z]]></label></item></reply>"#;
    let loose = "<item id='ab'><label>x: <y></label><n>3</n><tags>p</tags><tags>q</tags><more/></item> <item id='cd'><label>z</label></item>";
    let yaml = "items:\n  - id: ab\n    label: 'x: <y>'\n    n: 3\n    tags: [p, q]\n  - id: \"cd\"\n    label: |-\n      z\nend: true";
    let flat = "- label: 'x: <y>'\n  n: 3\n  tags:\n  - p\n  - q\n  id: ab\n- id: cd\n  label: z\n  n: ~\n...";
    for text in [json, by_id, lines, xml, loose, yaml, flat] {
        for format in Format::ALL {
            assert_eq!(aligned(text, format), expected, "{format}\n{text}");
            let fenced = format!("Here you {{are}}:\n```\n{text}\n```\nAnything <else>?\n- no");
            assert_eq!(aligned(&fenced, format), expected, "{format}\n{fenced}");
        }
    }
}

#[test]
fn what_is_said_once_for_all() {
    for text in [
        r#"{"batch": {"language": "en"}, "items": [{"id": "ab", "label": "x"}]}"#,
        "<batch><language>en</language></batch><item id=\"ab\"><label>x</label></item>",
        "batch:\n  language: en\nitems:\n  - id: ab\n    label: x\nend: true",
    ] {
        let aligned = align(text, Format::Json, &task(), &["ab".to_owned()]).unwrap();
        assert_eq!(aligned.batch, Some(vec![json!("en")]), "{text}");
        assert!(aligned.answers[0].is_ok(), "{text}");
    }
}

#[test]
fn missing_double_unknown_and_malformed_items_are_told_apart() {
    let shown = |text: &str| aligned(text, Format::Json).join("\n");
    insta::assert_snapshot!(shown(r#"[{"id":"ab","label":"x"},{"id":"zz","label":"y"}]"#), @r#"
    ab="x" null []
    cd: the reply has no answer for it, and 1 for ids that nobody has
    "#);
    insta::assert_snapshot!(shown(r#"[{"id":"ab","label":"x"},{"id":"ab","label":"x","n":null},{"id":"cd","label":"y"},{"id":"cd","label":"w"}]"#), @r#"
    ab="x" null []
    cd: the reply has several different answers for it
    "#);
    insta::assert_snapshot!(shown(r#"[{"id":"ab","n":1.5,"label":"x"},{"id":"cd"}]"#), @r"
    ab: `n` is 1.5, not a value of type integer
    cd: `label` is missing
    ");
    insta::assert_snapshot!(shown("<item id=\"ab\"><label>x</label><label>y</label></item>"), @r"
    ab: `label` comes twice
    cd: the reply has no answer for it
    ");
    insta::assert_snapshot!(shown("- id: ab\n  label: a: b\n- id: cd\n  label: fine\nend: true"), @r#"
    ab: not YAML: mapping values are not allowed in this context
    cd="fine" null []
    "#);
    // Items of strangers are a reply that can be read; prose is not.
    insta::assert_snapshot!(shown(r#"{"items":[{"id":"zz","label":"x"}]}"#), @r"
    ab: the reply has no answer for it, and 1 for ids that nobody has
    cd: the reply has no answer for it, and 1 for ids that nobody has
    ");
    insta::assert_snapshot!(shown("I cannot help with that."), @"there is no JSON object with items in it");
    insta::assert_snapshot!(shown("{\"items\":\n[{\"id\":\"ab\",\"label\":x}]}"), @"a text without quotes (line 2 of the reply)");
    insta::assert_snapshot!(aligned("hm", Format::Xml).join(""), @"there is no <item> in it");
    insta::assert_snapshot!(aligned("- id: ab\n  label: x", Format::Yaml).join(""), @"it ends in the middle of an item, or without the last line `end: true`");
}

/// The reply about these labels, in a form of our own choice.
fn reply(format: Format, labels: &[String]) -> (Vec<String>, String) {
    let ids: Vec<String> = (0..labels.len()).map(|n| format!("id{n}x")).collect();
    let each = |show: &dyn Fn(&str, &str) -> String| -> String {
        ids.iter().zip(labels).map(|(id, label)| show(id, label)).collect()
    };
    let quoted = |label: &str| Value::from(label).to_string();
    let text = match format {
        Format::Json => {
            let items =
                each(&|id, label| format!("{{\"id\":\"{id}\",\"label\":{}}},", quoted(label)));
            format!("{{\"items\":[{}]}}", items.trim_end_matches(','))
        }
        Format::Xml => {
            let escape = |label: &str| label.replace('&', "&amp;").replace('<', "&lt;");
            each(&|id, label| {
                format!("<item id=\"{id}\"><label>{}</label></item>\n", escape(label))
            })
        }
        Format::Yaml => {
            let items = each(&|id, label| format!("  - id: {id}\n    label: {}\n", quoted(label)));
            format!("items:\n{items}end: true\n")
        }
    };
    (ids, text)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Wherever a reply is cut, every answer that is left is whole.
    #[test]
    fn a_cut_reply_gives_whole_answers_or_none(
        labels in proptest::collection::vec("[ -~é]{1,12}", 1..6),
        cut in 0.0_f64..1.0,
        asked in 0_usize..3,
        written in 0_usize..3,
    ) {
        let labels: Vec<String> = labels.iter().map(|label| format!("x{}x", label.trim())).collect();
        let (ids, text) = reply(Format::ALL[written], &labels);
        let mut end = (cut * text.len() as f64) as usize;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let task = Task::new("x", vec![Field::new("label", FieldType::String)]);
        let whole = align(&text, Format::ALL[asked], &task, &ids).unwrap();
        for (answer, label) in whole.answers.iter().zip(&labels) {
            prop_assert_eq!(answer, &Ok(vec![json!(label)]), "{}", text);
        }
        if let Ok(aligned) = align(&text[..end], Format::ALL[asked], &task, &ids) {
            for (answer, label) in aligned.answers.iter().zip(&labels) {
                prop_assert!(answer.is_err() || *answer == Ok(vec![json!(label)]), "{}", &text[..end]);
            }
        }
    }

    /// Whatever a reply is, reading it ends.
    #[test]
    fn any_text_can_be_read(text in "([{}\\[\\]\":,<>/&;\\-#a-z0-9\n ]|id|item|end: true|```){0,200}") {
        let ids = ["ab".to_owned()];
        for format in Format::ALL {
            let _ = align(&text, format, &task(), &ids);
        }
    }
}
