use tamis::{Bloom, Growing, TryInsert, Window};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words = ["to", "be", "or", "not", "to", "be"];
    println!("{:?}", distinct(&mut Bloom::for_items(words.len(), 0.01)?, &words)?);
    let filters: [Box<dyn TryInsert>; 2] =
        [Box::new(Growing::new(0.01)?), Box::new(Window::for_items(2, 0.01)?)];
    for mut filter in filters {
        println!("{:?}", distinct(&mut filter, &words)?);
    }
    Ok(())
}

/// Returns the words that are new to a filter of any type.
fn distinct<'a>(
    seen: &mut impl TryInsert,
    words: &[&'a str],
) -> Result<Vec<&'a str>, tamis::InsertError> {
    let mut new = Vec::new();
    for word in words {
        if seen.try_insert(word)? {
            new.push(*word);
        }
    }
    Ok(new)
}
