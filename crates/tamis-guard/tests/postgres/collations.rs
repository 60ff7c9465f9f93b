//! Text ids that are equal in PostgreSQL.

use tamis_guard::source::PostgresOptions;

use crate::checker::{has, text, wait_until};
use crate::fold::Fold;
use crate::stories::follow::{follow_as, polled, shop};

#[test]
fn all_characters_have_the_key_of_their_small_letter() {
    let mut shop = shop();
    let key = |text: &str| String::from_utf8(Fold::Case.key(text.as_bytes()).into_owned()).unwrap();
    // `citext` compares the small letters by the locale of the database.
    for locale in ["C", "default", "und-x-icu", "tr-x-icu", "lt-x-icu"] {
        let all = shop.session.value(&format!(
            "SELECT string_agg(chr(n) || lower(chr(n) COLLATE \"{locale}\"), E'\\n' ORDER BY n)
             FROM generate_series(32, 1114111) n WHERE n NOT BETWEEN 55296 AND 57343"
        ));
        assert!(all.len() > 1_000_000, "{}", all.len());
        for line in all.split('\n') {
            let character = line.chars().next().expect("a character");
            let small = &line[character.len_utf8()..];
            assert_eq!(key(small), key(&character.to_string()), "{locale} {character:?} {small:?}");
        }
    }
}

#[test]
fn texts_pass_that_the_database_finds() {
    let mut shop = shop();
    shop.run(
        "CREATE EXTENSION citext;
        CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
        CREATE TABLE words (at bigint, id citext PRIMARY KEY);
        CREATE TABLE codes (at bigint, id char(8) PRIMARY KEY);
        CREATE TABLE loose (at bigint, id text COLLATE loose PRIMARY KEY);
        ALTER PUBLICATION tamis_guard ADD TABLE words, codes, loose;
        INSERT INTO words VALUES (1, 'Abc'), (1, 'gone'); INSERT INTO codes VALUES (1, 'Abc'), (1, 'gone');
        INSERT INTO loose VALUES (1, 'Abc'), (1, 'gone')",
    );
    for (table, exact, spellings, is_precise) in [
        ("words", false, &["abc", "ABC", "Abc"][..], false),
        ("words", true, &["Abc"], true),
        ("codes", false, &["Abc", "Abc  "], true),
        ("loose", true, &["Abc"], true),
    ] {
        let log = PostgresOptions { exact, ..shop.table(table) };
        for postgres in [log.clone(), polled(&log, "at", 10)] {
            let (ids, source) = follow_as(text(), &postgres);
            assert!(spellings.iter().all(|spelling| has(&ids, spelling)), "{table}");
            assert!(!has(&ids, "abd"));
            assert_eq!(has(&ids, "aBC"), !exact && table == "words");
            if postgres.poll.is_some() {
                continue;
            }
            shop.run(&format!("UPDATE {table} SET id = 'ABC' WHERE id = 'Abc'"));
            shop.run(&format!("DELETE FROM {table} WHERE id = 'gone'"));
            shop.run(&format!("INSERT INTO {table} VALUES (2, 'new')"));
            wait_until(&source, "the last change", || has(&ids, "new"));
            assert!(has(&ids, "ABC"), "{table}");
            assert_eq!(has(&ids, "gone"), !is_precise, "{table}");
            shop.run(&format!(
                "TRUNCATE {table}; INSERT INTO {table} VALUES (1, 'Abc'), (1, 'gone')"
            ));
        }
    }
}
