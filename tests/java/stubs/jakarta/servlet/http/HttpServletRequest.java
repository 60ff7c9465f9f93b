package jakarta.servlet.http;

public interface HttpServletRequest {
    String getRequestURI();
}
