import java.io.File;
import java.util.Map;
import org.eclipse.jgit.api.Git;
import org.eclipse.jgit.transport.CredentialsProvider;
import org.eclipse.jgit.transport.TagOpt;
import org.eclipse.jgit.transport.UsernamePasswordCredentialsProvider;

/**
 * The JGit client of the interop tests: clone | shallow | fetch, then URL and FOLDER. Takes credentials from
 * CLIENT_USER and CLIENT_PASSWORD.
 */
public final class Client {
  public static void main(String[] arguments) throws Exception {
    String verb = arguments[0];
    String url = arguments[1];
    File folder = new File(arguments[2]);
    var clone = Git.cloneRepository().setURI(url).setDirectory(folder).setNoCheckout(true);
    clone.setCredentialsProvider(account());
    switch (verb) {
      case "clone" -> clone.setCloneAllBranches(true).setTagOption(TagOpt.FETCH_TAGS).call().close();
      case "shallow" -> clone.setDepth(1).setCloneAllBranches(false).setNoTags().call().close();
      case "fetch" -> {
        try (Git git = Git.open(folder)) {
          git.fetch().setTagOpt(TagOpt.FETCH_TAGS).setCredentialsProvider(account()).call();
        }
      }
      default -> throw new IllegalArgumentException("unknown verb " + verb);
    }
  }

  private static CredentialsProvider account() {
    Map<String, String> environment = System.getenv();
    String user = environment.get("CLIENT_USER");
    if (user == null) return null;
    return new UsernamePasswordCredentialsProvider(user, environment.get("CLIENT_PASSWORD"));
  }
}
