import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Holds a file open. For each line of input, prints its content by read, pread and mmap, and that of the path, as JSON.
 */
class Reader {
  public static void main(String[] args) throws Exception {
    Path path = Path.of(args[0]);
    try (RandomAccessFile file = new RandomAccessFile(path.toFile(), "r")) {
      FileChannel channel = file.getChannel();
      ByteBuffer shared = channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size());
      BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
      while (lines.readLine() != null) {
        file.seek(0);
        byte[] read = new byte[(int) file.length()];
        file.readFully(read);
        ByteBuffer pread = ByteBuffer.allocate(read.length);
        channel.read(pread, 0);
        String held = list(text(read), text(pread.array()), text(shared));
        try (FileChannel again = FileChannel.open(path)) {
          ByteBuffer mapped = again.map(FileChannel.MapMode.READ_ONLY, 0, again.size());
          String now = list(Files.readString(path), text(mapped));
          System.out.println("{\"held\":" + held + ",\"now\":" + now + "}");
        }
      }
    }
  }

  private static String text(byte[] bytes) {
    return new String(bytes, StandardCharsets.UTF_8);
  }

  private static String text(ByteBuffer buffer) {
    byte[] bytes = new byte[buffer.capacity()];
    buffer.get(0, bytes);
    return text(bytes);
  }

  /** A JSON array of texts without control characters except the end of a line. */
  private static String list(String... texts) {
    StringBuilder json = new StringBuilder("[");
    for (String each : texts) {
      String escaped = each.replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", "\\n");
      json.append(json.length() > 1 ? "," : "").append('"').append(escaped).append('"');
    }
    return json.append("]").toString();
  }
}
