//! Text ids under the collations of MariaDB.

use std::collections::HashMap;

use tamis_sources::{IdType, MysqlOptions, SyncState};

use crate::checker::{Dir, has, id_set, knows, read_again, text, wait_synced, wait_until};
use crate::fold::Fold;
use crate::server::{Session, Shop};
use crate::stories::follow::{continued, follow_as, polled, refused_as, shop, start, with};

/// Returns the weights of texts. `numbers` is SQL for the numbers of the characters, and `text` for the arguments of
/// `CHAR`. A weight has 2 bytes, or 4 if the collation computes it from the number of the character.
fn weights(
    session: &mut Session,
    collation: &str,
    [numbers, text, from]: [&str; 3],
) -> Vec<(String, Vec<String>)> {
    let sql = format!(
        "SELECT CONCAT({numbers}, ' ', HEX(WEIGHT_STRING(CONVERT(CHAR({text} USING utf32) USING utf8mb4) \
         COLLATE {collation}))) FROM {from}"
    );
    let row = |row: Vec<u8>| {
        let row = String::from_utf8(row).unwrap();
        let (numbers, hex) = row.split_once(' ').unwrap();
        let characters = numbers.split(',').map(|it| char::from_u32(it.parse().unwrap()).unwrap());
        let mut weights: Vec<String> = Vec::new();
        for weight in hex.as_bytes().chunks(4) {
            let weight = std::str::from_utf8(weight).unwrap();
            match weights.last_mut() {
                Some(last) if last.len() == 4 && last.starts_with("FB") => last.push_str(weight),
                _ => weights.push(weight.to_owned()),
            }
        }
        (characters.collect(), weights)
    };
    session.texts(&sql).into_iter().map(row).collect()
}

fn key(fold: Fold, text: &str) -> String {
    String::from_utf8(fold.key(text.as_bytes()).into_owned()).unwrap()
}

/// Compares the keys of texts with those of the characters that have their weights.
fn check(fold: Fold, texts: &[(String, Vec<String>)], of_weights: &HashMap<String, String>) {
    let mut wrong = Vec::new();
    for (text, weights) in texts {
        let same: String = weights.iter().map(|weight| &*of_weights[weight]).collect();
        // Each key ends with a letter, because spaces at the end do not count.
        let [found, expected] = [text, &same].map(|text| key(fold, &format!("{text}x")));
        if found != expected {
            wrong.push(format!(
                "{text:?} has the weights of {same:?}, and {found:?} is not {expected:?}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{} of {fold:?}: {:#?}", wrong.len(), &wrong[..wrong.len().min(20)]);
}

/// Characters with which a pair begins that has weights of its own in `uca1400_ai_ci`: vowels that stand before their
/// consonant, and letters that a sign makes another letter.
const FIRSTS: &str = "76, 108, 1048, 1080, 1575, 1608, 1610, 2503, 2887, 2962, 3014, 3015, 3142, 3263, 3270, 3274, \
    3398, 3399, 3545, 3548, 3648, 3649, 3650, 3651, 3652, 3661, 3776, 3777, 3778, 3779, 3780, 3789, 3953, 4018, 4019, \
    4133, 6581, 6582, 6583, 6586, 6917, 6919, 6921, 6923, 6925, 6929, 6970, 6972, 6974, 6975, 6978, 43701, 43702, \
    43705, 43707, 43708, 69937, 69938, 70471, 70841, 71096, 71097, 71989";

#[test]
fn all_characters_that_a_collation_takes_for_one_have_one_key() {
    let mut session = Session::open(&shop().options.url);
    let all = "seq_0_to_918015 WHERE seq < 55296 OR seq BETWEEN 57344 AND 262143 OR seq > 917503";
    for name in ["general_ci", "unicode_ci", "unicode_520_ci", "uca1400_ai_ci"] {
        let collation = format!("utf8mb4_{name}");
        let fold = Fold::of_collation(&collation).unwrap();
        let characters = weights(&mut session, &collation, ["seq", "seq", all]);
        assert_eq!(characters.len(), 260_608);
        let mut of_weights = HashMap::new();
        for (character, weights) in &characters {
            if let [weight] = &**weights {
                of_weights.entry(weight.clone()).or_insert_with(|| character.clone());
            }
        }
        check(fold, &characters, &of_weights);
        if name == "uca1400_ai_ci" {
            let second = "a.seq DIV 256 * 256 + b.seq";
            let numbers = format!("a.seq, ',', {second}");
            let from = format!("seq_0_to_71999 a, seq_0_to_255 b WHERE a.seq IN ({FIRSTS})");
            let pairs = [&*numbers, &format!("a.seq, {second}"), &from];
            let pairs = weights(&mut session, &collation, pairs);
            let has_own = |(text, weights): &&(String, Vec<String>)| {
                let single =
                    text.chars().map(|it| characters.iter().find(|(c, _)| c.starts_with(it)));
                single.flat_map(|found| &found.unwrap().1).ne(weights)
            };
            assert!(pairs.iter().filter(has_own).take(50).count() == 50, "pairs have own weights");
            check(fold, &pairs, &of_weights);
        }
    }
}

#[test]
fn letters_of_ascii_that_a_collation_takes_for_one_have_one_key() {
    let mut session = Session::open(&shop().options.url);
    for (collation, count) in [("ascii_general_ci", 128 + 52), ("ascii_bin", 128)] {
        let fold = Fold::of_collation(collation).unwrap();
        // The texts end with a letter, because spaces at the end do not count.
        let text = |table: &str| {
            format!("CONVERT(CHAR({table}.seq, 120) USING ascii) COLLATE {collation}")
        };
        let equal = session.texts(&format!(
            "SELECT CONCAT(a.seq, ' ', b.seq) FROM seq_0_to_127 a, seq_0_to_127 b WHERE {} = {}",
            text("a"),
            text("b")
        ));
        assert_eq!(equal.len(), count, "{collation}");
        for pair in equal {
            let pair = String::from_utf8(pair).unwrap();
            let (one, other) = pair.split_once(' ').unwrap();
            let [one, other] = [one, other].map(|it| char::from(it.parse::<u8>().unwrap()));
            let keys = [one, other].map(|it| key(fold, &format!("{it}x")));
            assert_eq!(keys[0], keys[1], "{collation} {one:?} {other:?}");
        }
    }
}

/// Creates a table with text ids under a collation, and returns options that follow it.
fn texts(shop: &mut Shop, name: &str, collation: &str, ids: &[&str]) -> MysqlOptions {
    shop.run(&format!(
        "CREATE TABLE {name} (id VARCHAR(40) CHARACTER SET utf8mb4 COLLATE {collation} PRIMARY KEY, \
         at TIMESTAMP(6) DEFAULT CURRENT_TIMESTAMP(6))"
    ));
    for id in ids {
        shop.run(&format!("INSERT INTO {name} (id) VALUES ('{id}')"));
    }
    shop.table(name)
}

#[test]
fn texts_pass_that_the_database_finds() {
    let mut shop = shop();
    shop.run("SET NAMES utf8mb4");
    for (number, (collation, spellings)) in [
        ("utf8mb4_general_ci", &["abc", "ABC ", "àbĉ"][..]),
        ("utf8mb4_unicode_ci", &["abc", "ABC ", "àbĉ", "ab\u{1}c"]),
        ("utf8mb4_unicode_520_ci", &["abc", "ABC ", "àbĉ"]),
        ("utf8mb4_uca1400_ai_ci", &["abc", "ABC ", "àbĉ"]),
        ("utf8mb4_uca1400_as_cs", &["Abc "]),
        ("utf8mb4_bin", &["Abc  "]),
        ("utf8mb4_nopad_bin", &["Abc"]),
    ]
    .into_iter()
    .enumerate()
    {
        let log = texts(&mut shop, &format!("texts{number}"), collation, &["Abc", "产品"]);
        for mysql in [log.clone(), polled(&log, "at", 50)] {
            let (ids, source) = follow_as(text(), &mysql);
            for spelling in spellings {
                let sql = format!("SELECT id FROM {} WHERE id = '{spelling}'", mysql.table);
                assert_eq!(shop.session.texts(&sql).len(), 1, "{collation} {spelling}");
                assert!(knows(&ids, spelling), "{collation} {spelling}");
            }
            for absent in ["abd", "ab", "産品", "产品x"] {
                assert!(!has(&ids, absent), "{collation} {absent}");
            }
            let new = if mysql.poll.is_some() { "New" } else { "Newer" };
            shop.run(&format!("INSERT INTO {} (id) VALUES ('{new}')", mysql.table));
            wait_until(&source, "the new row", || has(&ids, new));
        }
    }
}

#[test]
fn a_deletion_deletes_no_other_spelling_that_exists() {
    let mut shop = shop();
    for (name, collation, is_precise) in [
        ("precise", "utf8mb4_general_ci", true),
        ("padded", "utf8mb4_bin", true),
        ("coarse", "utf8mb4_uca1400_as_cs", false),
    ] {
        let mysql = texts(&mut shop, name, collation, &["Abc", "gone", "last"]);
        let (ids, source) = follow_as(text(), &mysql);
        shop.run(&format!("UPDATE {name} SET id = 'ABC' WHERE id = 'Abc'"));
        shop.run(&format!("REPLACE INTO {name} (id) VALUES ('ABC')"));
        shop.run(&format!("DELETE FROM {name} WHERE id = 'gone'"));
        shop.run(&format!("INSERT INTO {name} (id) VALUES ('new')"));
        wait_until(&source, "the last change", || has(&ids, "new"));
        assert!(knows(&ids, "ABC"), "{collation}");
        assert_eq!(has(&ids, "gone"), !is_precise, "{collation}");
        source.rebuild();
        wait_until(&source, "a read of all ids", || !has(&ids, "gone"));
        assert!(has(&ids, "ABC") && has(&ids, "last"), "{collation}");
    }
}

#[test]
fn a_polled_deletion_in_another_spelling_deletes_no_row() {
    let mut shop = shop();
    let mysql = texts(&mut shop, "spelled", "utf8mb4_general_ci", &["ABC", "gone"]);
    shop.run("CREATE TABLE deleted_ids (id VARCHAR(40))");
    shop.run("INSERT INTO deleted_ids VALUES ('abc'), ('gone')");
    let mysql = with(&polled(&mysql, "at", 50), |poll| {
        poll.deletions = Some("SELECT id FROM deleted_ids".to_owned());
    });
    let (ids, source) = follow_as(text(), &mysql);
    shop.run("DELETE FROM spelled WHERE id = 'gone'");
    // The same poll reads both deletions.
    wait_until(&source, "the deletion", || !has(&ids, "gone"));
    assert!(has(&ids, "ABC") && has(&ids, "abc"), "{:?}", source.status());
    assert_eq!(source.status().generations, 1);
    refused_as(IdType::Uuid, &mysql, "deletions needs a column of the type BINARY(16) or UUID");
}

#[test]
fn a_deleted_uuid_deletes_no_other_spelling_that_exists() {
    let mut shop = shop();
    let [usual, upper, plain] = [
        "67e55044-10b1-426f-9247-bb680e5fe0c8",
        "67E55044-10B1-426F-9247-BB680E5FE0C8",
        "67e5504410b1426f9247bb680e5fe0c8",
    ];
    for (name, collation, other) in
        [("upper", "utf8mb4_bin", upper), ("plain", "utf8mb4_general_ci", plain)]
    {
        let mysql = texts(&mut shop, name, collation, &[usual, other]);
        let (ids, source) = follow_as(IdType::Uuid, &mysql);
        let new = "00000000-0000-0000-0000-000000000000";
        shop.run(&format!("DELETE FROM {name} WHERE id = '{usual}'"));
        shop.run(&format!("INSERT INTO {name} (id) VALUES ('{new}')"));
        wait_until(&source, "the new row", || has(&ids, new));
        assert!(knows(&ids, usual) && knows(&ids, other), "{collation}");
        shop.run(&format!("DELETE FROM {name} WHERE id = '{other}'"));
        read_again(&source, || source.rebuild());
        assert!(!has(&ids, usual), "{collation}");
    }
}

#[test]
fn a_collation_of_a_language_is_refused_unless_ids_are_exact() {
    let mut shop = shop();
    let mysql = texts(&mut shop, "language", "utf8mb4_swedish_ci", &["Abc"]);
    let error = refused_as(text(), &mysql, "exact = true");
    assert!(error.contains("utf8mb4_swedish_ci"), "{error}");
    let exact = MysqlOptions { exact: true, ..mysql };
    let (ids, _source) = follow_as(text(), &exact);
    assert!(knows(&ids, "Abc") && !knows(&ids, "abc") && !knows(&ids, "Abc "));
    // The next generation has the rule of the new collation.
    let ids = id_set(text());
    let source = start(&ids, &MysqlOptions { exact: false, ..exact });
    shop.run("ALTER TABLE language MODIFY id VARCHAR(40) COLLATE utf8mb4_bin");
    wait_synced(&source);
    assert!(!knows(&ids, "abc"));
    shop.run("ALTER TABLE language MODIFY id VARCHAR(40) COLLATE utf8mb4_general_ci");
    wait_until(&source, "the new rule", || {
        source.status().state == SyncState::Synced && has(&ids, "abc ")
    });
    assert!(!knows(&ids, "abd"));
}

#[test]
fn a_snapshot_keeps_which_texts_are_one_id() {
    let (mut shop, dir) = (shop(), Dir::new());
    let mysql =
        continued(&texts(&mut shop, "kept", "utf8mb4_general_ci", &["Abc"]), &dir.path("a"));
    for exact in [false, false, true] {
        let (ids, source) = {
            let mut mysql = mysql.clone();
            mysql.options.exact = exact;
            follow_as(text(), &mysql)
        };
        assert_eq!(has(&ids, "abc"), !exact);
        assert!(has(&ids, "Abc") && !has(&ids, "abd"));
        source.stop();
    }
}
