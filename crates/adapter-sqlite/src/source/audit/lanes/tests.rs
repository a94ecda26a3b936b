//! Each row is in one lane, and a lane begins where its place says.

use super::*;

/// All texts of up to `length` of these characters.
fn texts(characters: &[u8], length: usize) -> Vec<Vec<u8>> {
    let mut all = vec![Vec::new()];
    let mut last = all.clone();
    for _ in 0..length {
        last = last
            .iter()
            .flat_map(|text| characters.iter().map(move |next| [&text[..], &[*next]].concat()))
            .collect();
        all.extend(last.clone());
    }
    all
}

#[test]
fn integers_begin_after_any_place_and_rise_as_texts() {
    let numbers: Vec<i64> = [i64::MIN, i64::MIN + 1]
        .into_iter()
        .chain(-120..=120)
        .chain([1_000, 1_019, 5_010])
        .chain([i64::MAX])
        .collect();
    for after in texts(b"-/0159:", 4).into_iter().map(Some).chain([None]) {
        let text = |number: i64| number.to_string().into_bytes();
        let mut wanted: Vec<i64> = numbers.clone();
        wanted.retain(|number| after.as_ref().is_none_or(|after| text(*number) > *after));
        let mut found = Vec::new();
        for Stretch { begin, end, falling } in integers(after.as_deref()) {
            let (low, high) = if falling { (end, begin) } else { (begin, end) };
            let mut stretch: Vec<i64> =
                numbers.iter().copied().filter(|number| (low..=high).contains(number)).collect();
            if falling {
                stretch.reverse();
            }
            assert!(stretch.is_sorted_by_key(|number| text(*number)), "{begin} to {end}");
            found.extend(stretch);
        }
        found.sort_unstable();
        assert!(found == wanted, "{:?}", after.map(String::from_utf8));
    }
}

#[test]
fn blobs_begin_no_later_than_any_place() {
    let blobs = texts(&[0, 9, 10, 0x90, 0xFF], 2);
    for prefix in [b"".as_slice(), b"b:"] {
        let place =
            |blob: &Vec<u8>| [prefix, crate::source::names::to_hex(blob).as_bytes()].concat();
        for after in texts(b"09AFb:", 4) {
            let begin = first_blob(&after, prefix);
            for blob in &blobs {
                let taken = begin.as_ref().is_some_and(|begin| blob >= begin);
                assert!(taken || place(blob) <= after, "{after:?} {prefix:?} {blob:?}");
            }
        }
        assert_eq!(first_blob(&[prefix, b"0A"].concat(), prefix), Some(vec![10]));
    }
}
