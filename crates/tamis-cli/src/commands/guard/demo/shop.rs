//! The database of the demo: a shop with products. Each start of the demo creates the same
//! products.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::{Connection, params};

/// The number of products in the shop at the start. The products have the ids 1 to `PRODUCTS`.
pub const PRODUCTS: u64 = 100_000;

/// A product.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Product {
    pub english: String,
    pub chinese: String,
    pub price_cents: u32,
    pub stock: u32,
}

/// Creates the database with its products. If `is_stopped` becomes true, the function stops early
/// and stores no products.
pub fn create(path: &Path, products: u64, is_stopped: &AtomicBool) -> rusqlite::Result<()> {
    let mut connection = Connection::open(path)?;
    // In WAL mode, readers do not wait for a writer. Syncs are off because the database does not
    // outlive the demo.
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "off")?;
    let transaction = connection.transaction()?;
    transaction.execute_batch(
        "CREATE TABLE products (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            name TEXT NOT NULL,
            name_zh TEXT NOT NULL,
            price_cents INTEGER NOT NULL,
            stock INTEGER NOT NULL
        )",
    )?;
    for id in 1..=products {
        // Relaxed ordering is enough, because the flag publishes no other data.
        if is_stopped.load(Ordering::Relaxed) {
            return Ok(());
        }
        insert(&transaction, &product(id))?;
    }
    transaction.commit()
}

/// Inserts a product. Returns the id of the product.
pub fn insert(connection: &Connection, product: &Product) -> rusqlite::Result<u64> {
    let mut statement = connection.prepare_cached(
        "INSERT INTO products (name, name_zh, price_cents, stock) VALUES (?, ?, ?, ?)",
    )?;
    let Product { english, chinese, price_cents, stock } = product;
    statement.execute(params![english, chinese, price_cents, stock])?;
    Ok(connection.last_insert_rowid().cast_unsigned())
}

const BRANDS: [(&str, &str); 16] = [
    ("Cloudpine", "云杉"),
    ("Northlake", "北湖"),
    ("Jadeleaf", "玉叶"),
    ("Redkiln", "红窑"),
    ("Farhill", "远山"),
    ("Morningtide", "晨汐"),
    ("Oldwell", "古井"),
    ("Silverfern", "银蕨"),
    ("Plumcourt", "梅苑"),
    ("Stonebridge", "石桥"),
    ("Bluecrane", "青鹤"),
    ("Lanternway", "灯巷"),
    ("Riverbend", "河湾"),
    ("Goldmillet", "金粟"),
    ("Whitefield", "白野"),
    ("Tamarind", "罗望子"),
];

const MATERIALS: [(&str, &str); 12] = [
    ("bamboo", "竹制"),
    ("cotton", "纯棉"),
    ("linen", "亚麻"),
    ("oak", "橡木"),
    ("porcelain", "陶瓷"),
    ("steel", "不锈钢"),
    ("glass", "玻璃"),
    ("wool", "羊毛"),
    ("leather", "真皮"),
    ("walnut", "胡桃木"),
    ("copper", "紫铜"),
    ("silk", "真丝"),
];

const THINGS: [(&str, &str); 20] = [
    ("tea tray", "茶盘"),
    ("desk lamp", "台灯"),
    ("travel mug", "随行杯"),
    ("backpack", "双肩包"),
    ("notebook", "笔记本"),
    ("pillow", "枕头"),
    ("bookshelf", "书架"),
    ("rice bowl", "饭碗"),
    ("phone stand", "手机支架"),
    ("watch strap", "表带"),
    ("scarf", "围巾"),
    ("storage box", "收纳盒"),
    ("picture frame", "相框"),
    ("cutting board", "砧板"),
    ("pencil case", "笔袋"),
    ("blanket", "毯子"),
    ("wall clock", "挂钟"),
    ("teapot", "茶壶"),
    ("serving plate", "餐盘"),
    ("key ring", "钥匙扣"),
];

/// Returns the product with this id.
pub fn product(id: u64) -> Product {
    let mut bits = mixed(id);
    let mut take = |choices: u64| {
        let taken = bits % choices;
        bits /= choices;
        taken
    };
    let brand = BRANDS[take(BRANDS.len() as u64) as usize];
    let material = MATERIALS[take(MATERIALS.len() as u64) as usize];
    let thing = THINGS[take(THINGS.len() as u64) as usize];
    let model = take(900) + 100;
    Product {
        english: format!("{} {} {} {model}", brand.0, material.0, thing.0),
        chinese: format!("{}{}{} {model}", brand.1, material.1, thing.1),
        price_cents: (take(50_000) + 990) as u32,
        stock: take(500) as u32,
    }
}

/// Returns a number whose bits look random (SplitMix64). The same `number` always gives the same
/// result.
pub fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_products_are_the_same_at_each_start() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shop.db");
        create(&path, 50, &AtomicBool::new(false)).unwrap();
        let connection = Connection::open(&path).unwrap();
        let read = |id: u64| {
            let query = "SELECT name, name_zh FROM products WHERE id = ?";
            connection.query_row(query, [id.cast_signed()], |row| {
                Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
            })
        };
        for id in 1..=50 {
            let product = product(id);
            assert_eq!(read(id).unwrap(), (product.english, product.chinese));
        }
        assert!(read(51).is_err());
        assert_eq!(insert(&connection, &product(51)).unwrap(), 51);
        assert_ne!(product(1), product(2));
    }
}
