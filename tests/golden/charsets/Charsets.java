import java.io.PrintStream;
import java.nio.charset.Charset;
import java.util.HexFormat;

/** Writes how `String.getBytes` encodes every character in each charset that `--charset` accepts: see README.md. */
public class Charsets {
    static final String[] NAMES = {"UTF-8", "ISO-8859-1", "US-ASCII", "UTF-16", "UTF-16BE", "UTF-16LE", "GBK", "GB18030"};
    static final int BLOCK = 0x1000;
    /** Strings of code units: whole pairs, halves of pairs at every place, characters of one to four bytes. */
    static final String[] STRINGS = {
        "\ud800", "\udc00", "a\ud800", "\ud800a", "\udc00a", "a\udc00", "\udc00\ud800", "\ud800\ud800", "\ud83d\ude00",
        "\ud83d\ud83d\ude00", "\ud83d\ude00\ude00", "\u20ac\ud83d", "\ud83d\u20ac", "\u4f60\ud800\u597d", "\ufffd",
        "\ue5e5\u1e3f\ue7c7\ufe10\u9fb4\ue81e", "\u4f60\u597d\u20ac\u00e9\ud83d\ude00a", "\ufeffa", "\udbff\udfff\uffff", ""
    };

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream("charsets.json");
        out.println("{\"java\": \"" + System.getProperty("java.version") + "\", \"charsets\": [");
        for (int i = 0; i < NAMES.length; i++) {
            Charset charset = Charset.forName(NAMES[i]);
            out.println((i == 0 ? "" : ",") + "{\"name\": \"" + NAMES[i] + "\", \"blocks\": \"" + blocks(charset) + "\", \"strings\": [");
            for (int j = 0; j < STRINGS.length; j++) {
                String units = HexFormat.of().formatHex(utf16(STRINGS[j]));
                String bytes = HexFormat.of().formatHex(STRINGS[j].getBytes(charset));
                out.println("  [\"" + units + "\", \"" + bytes + "\"]" + (j + 1 < STRINGS.length ? "," : ""));
            }
            out.println("]}");
        }
        out.println("]}");
        out.close();
    }

    /** One FNV-1a hash of 32 bits for each block of code points: of every character's bytes, each after their number. */
    static String blocks(Charset charset) {
        StringBuilder all = new StringBuilder();
        for (int start = 0; start < 0x110000; start += BLOCK) {
            int hash = 0x811c9dc5;
            for (int c = start; c < start + BLOCK; c++) {
                if (c >= 0xd800 && c < 0xe000) continue;
                byte[] bytes = new String(Character.toChars(c)).getBytes(charset);
                hash = (hash ^ bytes.length) * 0x01000193;
                for (byte b : bytes) hash = (hash ^ (b & 0xff)) * 0x01000193;
            }
            all.append(String.format("%08x", hash));
        }
        return all.toString();
    }

    /** The code units themselves, halves of pairs included: no charset of Java keeps those. */
    static byte[] utf16(String text) {
        byte[] bytes = new byte[2 * text.length()];
        for (int i = 0; i < text.length(); i++) {
            bytes[2 * i] = (byte) (text.charAt(i) >> 8);
            bytes[2 * i + 1] = (byte) text.charAt(i);
        }
        return bytes;
    }
}
