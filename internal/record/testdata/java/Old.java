// Makes sets with the message classes of Kafka 0.8.2.2, and prints what those
// classes read in sets that Go made. Arguments: "write" or "read", the folder.
import java.nio.ByteBuffer;
import java.nio.file.*;
import java.util.*;
import java.util.zip.CRC32;
import kafka.javaapi.message.ByteBufferMessageSet;
import kafka.message.*;

final class Old {
    public static void main(String[] args) throws Exception {
        if (args[0].equals("read")) {
            try (DirectoryStream<Path> sets = Files.newDirectoryStream(Path.of(args[1]), "v0-*.set")) {
                for (Path p : sets)
                    Files.writeString(Path.of(p.toString().replace(".set", ".java.txt")), dump(Files.readAllBytes(p)));
            }
            return;
        }
        CompressionCodec[] codecs = {NoCompressionCodec$.MODULE$, GZIPCompressionCodec$.MODULE$,
            SnappyCompressionCodec$.MODULE$, LZ4CompressionCodec$.MODULE$};
        for (CompressionCodec c : codecs) {
            List<Message> list = new ArrayList<>();
            for (int i = 0; i < 8; i++) {
                StringBuilder s = new StringBuilder();
                for (int k = 0; k < (i == 5 ? 9000 : i * 3); k++) s.append("old ").append(k % 89).append(',');
                byte[] value = i == 3 && c == codecs[0] ? null : s.toString().getBytes();
                list.add(new Message(value, i % 2 == 0 ? null : ("k" + i).getBytes(), NoCompressionCodec$.MODULE$));
            }
            ByteBuffer b = new ByteBufferMessageSet(c, list).getBuffer();
            byte[] set = new byte[b.remaining()];
            b.duplicate().get(set);
            Files.write(Path.of(args[1], "old-" + c.name() + ".set"), set);
            Files.writeString(Path.of(args[1], "old-" + c.name() + ".txt"), dump(set));
        }
    }

    static String dump(byte[] set) {
        StringBuilder out = new StringBuilder();
        Iterator<MessageAndOffset> it = new ByteBufferMessageSet(ByteBuffer.wrap(set)).iterator();
        while (it.hasNext()) {
            MessageAndOffset m = it.next();
            m.message().ensureValid();
            out.append("R ").append(m.offset()).append(" -1 -1 ").append(bytes(m.message().key()))
               .append(' ').append(bytes(m.message().payload())).append('\n');
        }
        return out.toString();
    }

    static String bytes(ByteBuffer p) {
        if (p == null)
            return "null";
        byte[] b = new byte[p.remaining()];
        p.duplicate().get(b);
        if (b.length > 40) {
            CRC32 c = new CRC32();
            c.update(b);
            return "#" + b.length + ":" + Long.toHexString(c.getValue());
        }
        StringBuilder s = new StringBuilder();
        for (byte x : b)
            s.append(String.format("%02x", x & 0xff));
        return "'" + s + "'";
    }
}
