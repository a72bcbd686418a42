use std::fs;
use std::path::Path;

use wengert_tensor::Tensor;

use super::csv::LONGEST_LINE;
use super::source::tests::{gzipped, read_error_text};
use super::{Classes, Table, read_table};
use crate::Error;

fn error(contents: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.csv");
    fs::write(&path, contents).unwrap();
    let text = read_table::<f64>(&path).unwrap_err().to_string();
    text.replace(path.to_str().unwrap(), "table.csv")
}

#[test]
fn gzip_is_recognised_by_content() {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(&file, gzipped(b"\xef\xbb\xbf1,2\r\n\n3,4")).unwrap();
    assert_eq!(read_table::<f32>(&file).unwrap(), Tensor::from([[1.0, 2.0], [3.0, 4.0]]));
}

#[test]
fn errors_name_the_line() {
    for (contents, expected) in [
        (&b"1,2\n3,4\n5\n"[..], "'table.csv', line 3: expected 2 columns as in the first row, found 1"),
        (b"1,2\n\n3,x\n", "'table.csv', line 3, column 2: 'x' is not a finite number"),
        (b"1,2\n3,nan\n", "'table.csv', line 2, column 2: 'nan' is not a finite number"),
        (b"1,2\n3,\n", "'table.csv', line 2, column 2: '' is not a finite number"),
        (b"", "'table.csv' has no rows"),
        (b"\n\n", "'table.csv' has no rows"),
        (b"1,2\n1,\xff\xfe\n", "'table.csv', line 2: it is not text in UTF-8"),
        (b"1,2\n\"3,4\n5,6\n", "'table.csv', line 2: the quote that begins there is not closed"),
    ] {
        assert_eq!(error(contents), expected);
    }
}

#[test]
fn a_number_too_large_for_the_type_is_an_error_and_one_too_small_is_0() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let end = |error: Error| error.to_string().rsplit_once("', ").unwrap().1.to_owned();
    fs::write(&file, "1,2\n3,1e39\n").unwrap();
    assert_eq!(end(read_table::<f32>(&file).unwrap_err()), "line 2, column 2: '1e39' is too large for f32");
    assert_eq!(read_table::<f64>(&file).unwrap(), Tensor::from([[1.0, 2.0], [3.0, 1e39]]));
    // The number in the file is half a unit in the last place above the largest f32. It rounds up to infinity. Numbers between the largest
    // f32 and this number round down to the largest f32.
    fs::write(&file, "3.4028235677973366e38").unwrap();
    assert!(matches!(read_table::<f32>(&file), Err(Error::NumberTooLarge { line: 1, column: 1, .. })));
    fs::write(&file, "-3.4028235677973362e38, 1e-60").unwrap();
    assert_eq!(read_table::<f32>(&file).unwrap(), Tensor::from([[-f32::MAX, 0.0]]));
    fs::write(&file, "-1e400").unwrap();
    assert_eq!(end(read_table::<f64>(&file).unwrap_err()), "line 1, column 1: '-1e400' is too large for f64");
    fs::write(&file, "inf").unwrap();
    assert_eq!(end(read_table::<f32>(&file).unwrap_err()), "line 1, column 1: 'inf' is not a finite number");
}

#[test]
fn lines_have_a_maximal_length() {
    let line = "1,".repeat(LONGEST_LINE / 2);
    let expected = "'table.csv', line 2 is longer than 16777216 bytes";
    assert_eq!(error(format!("1,2\n{line}1\n").as_bytes()), expected);
    let longest = " ".repeat(LONGEST_LINE - 2) + "1\n";
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(&file, longest).unwrap();
    assert_eq!(read_table::<f32>(&file).unwrap(), Tensor::from([[1.0]]));
}

#[cfg(unix)]
#[test]
fn devices_and_pipes_are_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for path in [Path::new("/dev/zero"), &pipe] {
        let error = read_table::<f32>(path).unwrap_err().to_string();
        assert_eq!(error, format!("cannot read '{}': it is not a regular file", path.display()));
    }
}

#[test]
fn control_characters_are_escaped() {
    assert_eq!(
        error(b"1,\x1b[31mred\x07\n"),
        r"'table.csv', line 1, column 2: '\u{1b}[31mred\u{7}' is not a finite number"
    );
    let missing = read_table::<f64>("no/\u{1b}[2J\u{202e}.csv").unwrap_err().to_string();
    assert!(missing.starts_with(r"cannot read 'no/\u{1b}[2J\u{202e}.csv': No such file"), "{missing}");
}

#[test]
fn damaged_archives_and_missing_files_are_errors() {
    let whole = gzipped(b"1,2\n3,4\n5,6\n7,8\n");
    for end in [2, 9, whole.len() - 9, whole.len() - 1] {
        assert!(error(&whole[..end]).starts_with("cannot read 'table.csv': "), "{}", error(&whole[..end]));
    }
    let missing = read_table::<f64>("no/such/table.csv").unwrap_err().to_string();
    assert!(missing.starts_with("cannot read 'no/such/table.csv': No such file"), "{missing}");
    assert!(read_table::<f64>(std::env::temp_dir()).unwrap_err().to_string().contains("directory"));
}

fn table(contents: &str) -> Table {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(&file, contents).unwrap();
    Table::read_csv(&file).unwrap()
}

#[test]
fn quotes_protect_delimiters_and_line_ends() {
    let table = table("\u{feff}name, note ,x\r\n\"a \"\"b\"\"\",\"two\nlines, one field\", 1 \r\n\r\nc,,2");
    assert_eq!(table.names(), ["name", "note", "x"]);
    assert_eq!(table.texts("name").unwrap(), ["a \"b\"", "c"]);
    assert_eq!(table.texts("note").unwrap(), ["two\nlines, one field", ""]);
    assert_eq!(table.column::<f32>("x").unwrap(), Tensor::from([1.0, 2.0]));
    assert_eq!(table.names_except(&["note"]).unwrap(), ["name", "x"]);
    assert_eq!(table.lines, [2, 5]);
}

#[test]
fn missing_fields_are_dropped_filled_or_errors() {
    let table = table("a,b\n1,?\n2,3\nNA,4\n");
    let text = table.numbers::<f32>(&["b", "a"]).unwrap_err().to_string();
    assert!(text.ends_with(", line 2, column 2: '?' is not a finite number"), "{text}");
    assert_eq!(table.numbers_or::<f64>(&["b"], -1.0).unwrap(), Tensor::from([[-1.0], [3.0], [4.0]]));
    let kept = table.clone().drop_missing(&["a"]).unwrap();
    assert_eq!((kept.len(), kept.column::<f64>("a").unwrap()), (2, Tensor::from([1.0, 2.0])));
    assert!(table.clone().drop_missing(&["a", "b"]).unwrap().texts("b").unwrap().eq(&["3"]));
    assert_eq!(table.numbers::<f32>(&[]).unwrap().shape().sizes(), [3, 0]);
    let text = table.classes("a").unwrap_err().to_string();
    assert!(text.ends_with(", line 4: column 1: expected a class, but the field is missing"), "{text}");
    let text = table.column::<f32>("c").unwrap_err().to_string();
    assert!(text.ends_with(" has no column 'c'; it has 'a', 'b'"), "{text}");
}

#[test]
fn classes_are_in_the_order_of_numbers_or_characters() {
    let of = |contents| table(contents).classes("y").unwrap();
    assert_eq!(
        of("y\n10\n9\n10\n"),
        Classes { indices: Tensor::from([1, 0, 1]), names: vec!["9".into(), "10".into()] }
    );
    assert_eq!(of("y\nx10\nx9\n").names, ["x10", "x9"]);
}

#[test]
fn errors_of_tables_name_the_line() {
    for (contents, expected) in [
        (&b""[..], "'f' has no rows"),
        (b"a,b\n", "'f' has no rows"),
        (b"a,a\n1,2\n", "'f', line 1: two columns have the name 'a'"),
        (b"a,b\n1,2\n\n3\n", "'f', line 4: expected 2 columns as in the first row, found 1"),
        (b"a,b\n1,2,3\n", "'f', line 2: expected 2 columns as in the first row, found 3"),
        (b"a,b\n\"1\n2\",\xff\n", "'f', line 2: it is not text in UTF-8"),
        (b"a,b\n1,\"2\n", "'f', line 2: the quote that begins there is not closed"),
    ] {
        assert_eq!(read_error_text(contents, |path| Table::read_csv(path)), expected);
    }
    let open_quote = [&b"a\n\""[..], &[b'x'; LONGEST_LINE]].concat();
    assert_eq!(read_error_text(&open_quote, |path| Table::read_csv(path)), "'f', line 2 is longer than 16777216 bytes");
    assert!(Table::read_csv("/dev/zero").unwrap_err().to_string().ends_with("it is not a regular file"));
}

#[test]
fn a_row_of_empty_fields_is_a_row_with_every_delimiter() {
    let file = tempfile::NamedTempFile::new().unwrap();
    for delimiter in [",", ";", "\t", " "] {
        // One blank line is empty. The other has spaces or a tab, which is not the delimiter.
        let blank = if delimiter == " " { "\t" } else { "  " };
        let text = format!("x,y,z\n1,2,3\n,,\n\n{blank}\n4,5,6\n,,").replace(',', delimiter);
        fs::write(&file, text).unwrap();
        let table = Table::read_separated(&file, delimiter.as_bytes()[0]).unwrap();
        assert_eq!(table.texts("y").unwrap(), ["2", "", "5", ""], "{delimiter:?}");
        assert_eq!(table.lines, [2, 3, 6, 7], "{delimiter:?}");
    }
}

#[test]
fn classes_that_are_numbers_or_not_a_number_have_one_order() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let names: Vec<String> = (-20..=20).map(|number| format!("{number:+}")).chain(["+nan".to_owned()]).collect();
    fs::write(&file, format!("x\n{}\n", names.join("\n"))).unwrap();
    assert_eq!(Table::read_csv(&file).unwrap().classes("x").unwrap().names, names);
}

#[test]
fn a_replacement_that_is_too_large_for_the_type_is_an_error() {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(&file, "x,y\n1,\n2,4\n").unwrap();
    let table = Table::read_csv(&file).unwrap();
    let text = table.numbers_or::<f32>(&["y"], 1e39).unwrap_err().to_string();
    assert_eq!(text, format!("numbers_or: {:?} is too large for f32", 1e39));
    assert_eq!(table.numbers_or::<f64>(&["y"], 1e39).unwrap(), Tensor::from([[1e39], [4.0]]));
    assert_eq!(table.numbers_or::<f32>(&["y"], f64::INFINITY).unwrap(), Tensor::from([[f32::INFINITY], [4.0]]));
}

#[test]
fn a_delimiter_that_has_another_meaning_is_an_error() {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(&file, "x,y\n1,2\n").unwrap();
    for delimiter in [b'"', b'\n', b'\r', 0xc3] {
        let text = Table::read_separated(&file, delimiter).unwrap_err().to_string();
        let shown = (delimiter as char).escape_default();
        assert!(text.starts_with("read_separated: expected a delimiter that is ASCII"), "{text}");
        assert!(text.ends_with(&format!("but got '{shown}'")), "{text}");
    }
}
