package jakarta.annotation;

public @interface PostConstruct {
}
